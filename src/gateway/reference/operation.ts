/** One operation on the page: what it does, who may, what it takes, what it answers, how to try. */
import { STATUS_CODES } from 'node:http';
import type {
  MediaType,
  OpenApi,
  Operation,
  Parameter,
  Response,
} from '../description/document.ts';
import { curlExample, exampleOf } from './curl.ts';
import { html, inlineMarkdown, markdown, type Html } from './html.ts';
import { constraintsOf, resolve, schemaView, typeView } from './schema.ts';

export interface Place {
  method: string;
  path: string;
  operation: Operation;
}

export function operationView(document: OpenApi, place: Place): Html {
  const { method, path, operation } = place;
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const permission = operation['x-permission'];
  return html`<article id="${operationId}" data-words="${searchWords(place)}">
    <h3><a href="#${operationId}">${inlineMarkdown(summary ?? operationId)}</a></h3>
    <p class="call">${methodView(method)} <code class="path">${pathView(path)}</code></p>
    <p class="permission">
      <span class="badge ${permission.includes(':') ? 'scope' : 'open'}">${permission}</span>
      <span class="id">${operationId}</span>
    </p>
    ${markdown(description)} ${parameters && parametersView(parameters)}
    ${requestBody && bodyView(document, requestBody.content)} ${answersView(document, responses)}
    <h4>Example</h4>
    <div class="example">
      <button type="button" class="copy" hidden>Copy</button>
      <pre tabindex="0"><code>${curlExample(document, place)}</code></pre>
    </div>
  </article>`;
}

/** A long one may break behind a slash. */
export function pathView(path: string): Html {
  return html`${path.split('/').map((part, at) => (at === 0 ? part : html`/<wbr />${part}`))}`;
}

export function methodView(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`;
}

function searchWords({ method, path, operation }: Place): string {
  const { operationId, summary, tags = [], parameters = [] } = operation;
  const names = parameters.map(({ name }) => name);
  const words = [method, path, operationId, summary, operation['x-permission'], ...tags, ...names];
  return words.join(' ').toLowerCase();
}

function parametersView(parameters: Parameter[]): Html {
  return html`<h4>Parameters</h4>
    <dl class="fields">
      ${parameters.map((parameter) => {
        const { name, in: where, required, description, schema } = parameter;
        const example = exampleOf(parameter);
        const about = [
          constraintsOf(schema),
          example === undefined ? '' : `for instance ${example}`,
        ];
        return html`<dt>
            <code>${name}</code> <span class="type">${typeView(schema)} in ${where}</span>
            ${required === true && html`<span class="required">required</span>`}
          </dt>
          <dd>
            ${description !== undefined && html`<p>${inlineMarkdown(description)}</p>`}
            <p class="about">${about.filter((one) => one !== '').join(', ')}</p>
          </dd>`;
      })}
    </dl>`;
}

function bodyView(document: OpenApi, content: Record<string, MediaType>): Html {
  return html`<h4>Body</h4>
    ${Object.entries(content).map(([type, { schema }]) => mediaView(document, type, schema))}`;
}

function mediaView(document: OpenApi, type: string, schema: MediaType['schema']): Html {
  const named = schema.$ref !== undefined;
  return html`<p class="media"><code>${type}</code> ${typeView(schema)}</p>
    ${
      resolve(document, schema).properties !== undefined &&
      html`<details>
        <summary>${named ? 'Its fields' : 'Fields'}</summary>
        ${schemaView(resolve(document, schema))}
      </details>`
    }`;
}

function answersView(document: OpenApi, responses: Operation['responses']): Html {
  return html`<h4>Answers</h4>
    <dl class="answers">
      ${Object.entries(responses).map(
        ([status, response]) =>
          html`<dt><span class="status s${status[0]}">${status}</span></dt>
            <dd>${answerView(document, status, response)}</dd>`,
      )}
    </dl>`;
}

function answerView(document: OpenApi, status: string, response: Response): Html {
  const name = response.$ref?.split('/').at(-1);
  if (name !== undefined) {
    const shared = document.components.responses[name];
    return html`<p>${inlineMarkdown(shared?.description ?? STATUS_CODES[status] ?? '')}</p>`;
  }
  return html`<p>${inlineMarkdown(response.description ?? '')}</p>
    ${Object.entries(response.content ?? {}).map(([type, { schema }]) =>
      mediaView(document, type, schema),
    )}`;
}
