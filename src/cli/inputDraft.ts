/** Inputs as people write them: `--input NAME=URI`, `inputs: {NAME: URI}`, `URI#sha256:…`. */
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError } from './args.ts';
import { asText } from './values.ts';

/** What has a scheme is a URI; anything else is a path of this machine and is sent along. */
export const HAS_SCHEME = /^[a-z][a-z0-9+.-]*:/i;

export function readInputs(spec: SubmittedSpec, value: unknown, what: string): void {
  spec.inputs = pairs(value, what).map(([name, text]) => {
    const [, uri, hash = ''] = /^(.*?)(?:#(sha256:[0-9a-f]{64}))?$/s.exec(text)!;
    if (!uri) throw new UsageError(`${what} ${name} names nothing`, `write ${what} ${name}=URI`);
    return { name, uri, hash };
  });
}

function pairs(value: unknown, what: string): [string, string][] {
  if (Array.isArray(value)) {
    return value.map((entry) => {
      if (isWhole(entry))
        return [entry.name, entry.hash ? `${entry.uri}#${entry.hash}` : entry.uri];
      const text = asText(entry, what);
      const equals = text.indexOf('=');
      if (equals < 1) throw new UsageError(`${what} ${text}: write ${what} NAME=URI`);
      return [text.slice(0, equals), text.slice(equals + 1)];
    });
  }
  if (typeof value !== 'object' || value === null) {
    throw new UsageError(`${what} is not a list of names and where they come from`);
  }
  return Object.entries(value).map(([name, uri]) => [name, asText(uri, `${what}.${name}`)]);
}

/** As the API itself has it. */
function isWhole(entry: unknown): entry is { name: string; uri: string; hash?: string } {
  const { name, uri } = (entry ?? {}) as Record<string, unknown>;
  return typeof name === 'string' && typeof uri === 'string';
}
