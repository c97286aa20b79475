/** Images and inputs by the one name that patterns are compared with, however they were written. */
import { fileURLToPath } from 'node:url';

/** With registry and folder: `ubuntu` is docker.io/library/ubuntu. A path is one of a file. */
export function fullImageName(image: string): string {
  const bare = image.replace(/^docker:\/\//i, '');
  const [first = '', ...rest] = bare.split('/');
  if (first === '') return fullPath(bare);
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (!isHost) return rest.length > 0 ? `docker.io/${bare}` : `docker.io/library/${bare}`;
  const host = first.toLowerCase();
  const registry = host === 'index.docker.io' || host === 'registry-1.docker.io' ? HUB : host;
  const folder = registry === HUB && rest.length === 1 ? 'library/' : '';
  return `${registry}/${folder}${rest.join('/')}`;
}

const HUB = 'docker.io';

export const hasDigest = (image: string): boolean => /@sha256:[0-9a-f]{64}$/.test(image);

/** As the agent will read it: paths without `..` and escapes. Null where it names nothing. */
export function fullInputName(uri: string): string | null {
  try {
    const [, scheme = ''] = /^(file|pool|https?):\/\//i.exec(uri) ?? [];
    if (/^https?$/i.test(scheme)) return new URL(uri).href;
    if (scheme === '') return uri;
    return `${scheme}://${fileURLToPath(uri.replace(/^pool:/, 'file:'))}`;
  } catch {
    return null;
  }
}

/** An absolute path without `..`, `.` and doubled slashes; a relative one stays below. */
export function fullPath(path: string): string {
  if (!path.startsWith('/')) return path;
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}
