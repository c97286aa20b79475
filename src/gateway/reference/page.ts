/** The API reference as one page, made from the OpenAPI document; it needs nothing else. */
import { eachOperation, type OpenApi } from '../description/document.ts';
import { html, inlineMarkdown, markdown, type Html } from './html.ts';
import { methodView, operationView, pathView, type Place } from './operation.ts';
import { schemaView } from './schema.ts';

interface Group {
  name: string;
  description: string;
  places: Place[];
}

export function referencePage(document: OpenApi): string {
  const groups = groupsOf(document);
  const { title, version, description } = document.info;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} API ${version}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/reference/style.css" />
        <script type="module" src="/reference/search.js"></script>
      </head>
      <body>
        <a class="skip" href="#content">Skip to the operations</a>
        ${navigation(title, version, groups)}
        <main id="content">
          <header>
            <h1>${title} API <small>${version}</small></h1>
            <div id="introduction">
              ${markdown(description)}
              <p>For programs: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>
            </div>
            <p id="nothing" role="status" hidden>Nothing here has these words.</p>
          </header>
          ${groups.map((group) => groupView(document, group))} ${otherView(document)}
          ${schemasView(document)}
        </main>
      </body>
    </html>`;
  return page.text;
}

/** In the order of the tags; what has another tag comes after them. */
function groupsOf(document: OpenApi): Group[] {
  const groups = new Map<string, Group>(
    document.tags.map(({ name, description }) => [name, { name, description, places: [] }]),
  );
  for (const place of eachOperation(document)) {
    const name = place.operation.tags?.[0] ?? 'other';
    const group = groups.get(name) ?? { name, description: '', places: [] };
    group.places.push(place);
    groups.set(name, group);
  }
  return [...groups.values()].filter(({ places }) => places.length > 0);
}

function navigation(title: string, version: string, groups: Group[]): Html {
  return html`<nav aria-label="Operations">
    <p class="brand"><a href="#content">${title}</a> <small>${version}</small></p>
    <form role="search" hidden>
      <label for="search">Search</label>
      <input id="search" type="search" placeholder="path, permission, word" autocomplete="off" />
    </form>
    <details open>
      <summary>Operations</summary>
      ${groups.map(
        ({ name, places }) =>
          html`<section data-group="${name}">
            <h2><a href="#group-${name}">${name}</a></h2>
            <ul>
              ${places.map(
                ({ method, path, operation: { operationId } }) =>
                  html`<li data-for="${operationId}">
                    <a href="#${operationId}"
                      >${methodView(method)}<span>${pathView(path)}</span></a
                    >
                  </li>`,
              )}
            </ul>
          </section>`,
      )}
      <h2><a href="#schemas">schemas</a></h2>
    </details>
  </nav>`;
}

function groupView(document: OpenApi, { name, description, places }: Group): Html {
  return html`<section class="group" id="group-${name}">
    <h2>${name}</h2>
    ${description !== '' && html`<p>${inlineMarkdown(description)}</p>`}
    ${places.map((place) => operationView(document, place))}
  </section>`;
}

interface Other {
  path: string;
  method?: string;
  summary?: string;
  'x-permission': string;
}

/** What OpenAPI has no words for. */
function otherView(document: OpenApi): Html {
  const sockets = (document['x-websockets'] ?? []) as Other[];
  const others = (document['x-other-routes'] ?? []) as Other[];
  const row = ({ method = 'UPGRADE', path, summary = '', ...rest }: Other): Html =>
    html`<tr>
      <td>${methodView(method)}</td>
      <td><code>${path}</code></td>
      <td><code>${rest['x-permission']}</code></td>
      <td>${summary}</td>
    </tr>`;
  return html`<section class="group" id="group-others">
    <h2>WebSockets, agents and pages of tasks</h2>
    <p>Spoken by the command line, by agents and by browsers; their forms may change.</p>
    <div class="wide" tabindex="0" role="region" aria-label="Other routes">
      <table>
        <thead>
          <tr>
            <th>Method</th>
            <th>Path</th>
            <th>Permission</th>
            <th>What</th>
          </tr>
        </thead>
        <tbody>
          ${[...sockets, ...others].map(row)}
        </tbody>
      </table>
    </div>
  </section>`;
}

function schemasView({ components }: OpenApi): Html {
  return html`<section class="group" id="schemas">
    <h2>Schemas</h2>
    ${Object.entries(components.schemas).map(
      ([name, schema]) =>
        html`<article id="schema-${name}" class="schema" data-words="${name.toLowerCase()} schema">
          <h3><a href="#schema-${name}">${name}</a></h3>
          ${schemaView(schema)}
        </article>`,
    )}
  </section>`;
}
