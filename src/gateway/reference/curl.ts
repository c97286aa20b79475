/** An operation as a command that can be typed: the examples of its parameters and of its body. */
import type { MediaType, OpenApi, Operation, Parameter } from '../description/document.ts';
import { resolve } from './schema.ts';

export function curlExample(
  document: OpenApi,
  { method, path, operation }: { method: string; path: string; operation: Operation },
): string {
  const words = [`curl ${flagsOf(method, operation)}"$DROVER_URL${filledPath(path, operation)}"`];
  if (operation.security.length > 0 && !operation.security.some(isEmpty)) {
    words.push('-H "Authorization: Bearer $DROVER_TOKEN"');
  }
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (type !== undefined && media !== undefined) {
    words.push(`-H 'Content-Type: ${type}'`, bodyFlag(document, type, media));
  }
  return words.join(' \\\n  ');
}

function isEmpty(requirement: object): boolean {
  return Object.keys(requirement).length === 0;
}

function flagsOf(method: string, { responses }: Operation): string {
  // A stream of events is shown as it comes.
  const streams = responses['200']?.content?.['text/event-stream'] ? '-N ' : '';
  if (method === 'GET') return streams;
  return method === 'HEAD' ? '--head ' : `-X ${method} `;
}

function filledPath(path: string, { parameters = [] }: Operation): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const found = parameters.find((one) => one.in === 'path' && one.name === name);
    return encodeURIComponent(exampleOf(found) ?? name.toUpperCase());
  });
}

/** As it is typed; undefined where there is none. */
export function exampleOf(parameter: Parameter | undefined): string | undefined {
  const example = parameter?.example ?? parameter?.schema.examples?.[0];
  return typeof example === 'string' ? example : JSON.stringify(example);
}

function bodyFlag(document: OpenApi, type: string, media: MediaType): string {
  if (type !== 'application/json') return '--data-binary @FILE';
  const example = bodyExample(document, media) ?? {};
  // A quote would end the shell's word.
  return `-d '${JSON.stringify(example).replaceAll("'", String.raw`'\''`)}'`;
}

export function bodyExample(document: OpenApi, media: MediaType): unknown {
  return media.example ?? resolve(document, media.schema).examples?.[0];
}
