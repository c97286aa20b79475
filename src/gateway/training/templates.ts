/** The templates of a site: a folder, read anew for each job, so that an edit counts at once. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DroverError } from '../../lib/errors.ts';
import { nearest } from '../../lib/nearest.ts';
import { blobHashOf, type BlobHash } from '../../model/blob.ts';
import { manifestText, type ManifestFile } from '../../model/manifest.ts';
import {
  brokenTemplate,
  readTemplate,
  TEMPLATE_LIMITS,
  TEMPLATE_NAME,
  type Template,
} from './template.ts';

const SHIPPED = resolve(import.meta.dirname, '../../../templates/training');
const ENDING = '.yaml';

/** Code as it goes into the blob store. */
export interface CodeFiles {
  bundle: BlobHash;
  /** The files and the manifest that lists them. */
  blobs: Map<BlobHash, Buffer>;
}

export interface Templates {
  /** `field` is where the name was given, for the error when there is none such. */
  read(name: string, field: string): Promise<Template>;
  /** Undefined for a template without code. */
  codeOf(template: Template): Promise<CodeFiles | undefined>;
}

/** An empty folder name: the ones that Drover brings. */
export function openTemplates(named: string): Templates {
  const folder = named ? resolve(named) : SHIPPED;
  /** By name, as they were last read: compiling one takes longer than reading it. */
  const known = new Map<string, { text: string; template: Template }>();
  return {
    async read(name, field) {
      if (!TEMPLATE_NAME.test(name)) throw await noSuchTemplate(folder, name, field);
      const path = join(folder, name + ENDING);
      try {
        const { size } = await stat(path);
        if (size > TEMPLATE_LIMITS.bytes) {
          throw brokenTemplate(
            name,
            undefined,
            `has ${size} bytes, the limit is ${TEMPLATE_LIMITS.bytes}`,
          );
        }
        const text = await readFile(path, 'utf8');
        const last = known.get(name);
        if (last?.text === text) return last.template;
        const template = readTemplate(name, text);
        known.set(name, { text, template });
        return template;
      } catch (error) {
        if (!isAbsent(error)) throw error;
        throw await noSuchTemplate(folder, name, field);
      }
    },
    codeOf: (template) => (template.code ? readCode(folder, template) : Promise.resolve(undefined)),
  };
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

async function noSuchTemplate(folder: string, name: string, field: string): Promise<DroverError> {
  const files = await readdir(folder).catch(() => []);
  const names = files
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .toSorted();
  const meant = nearest(name, names);
  const known = names.length > 0 ? `There are ${names.join(', ')}.` : 'The site has none.';
  return new DroverError('INVALID_ARGUMENT', `${field}: there is no template ${shown(name)}`, {
    hint: meant ? `Did you mean ${meant}? ${known}` : known,
  });
}

const SHOWN = 100;
const shown = (name: string): string => JSON.stringify(name.slice(0, SHOWN));

async function readCode(folder: string, template: Template): Promise<CodeFiles> {
  const { codeFiles, codeBytes } = TEMPLATE_LIMITS;
  const root = join(folder, template.code);
  const fail = (message: string, cause?: unknown): DroverError =>
    brokenTemplate(template.name, undefined, `its code ${template.code}/ ${message}`, cause);
  const files: ManifestFile[] = [];
  const blobs = new Map<BlobHash, Buffer>();
  let bytes = 0;
  const paths = await codePaths(root).catch((error: unknown) => {
    throw fail('cannot be read', error);
  });
  for (const path of paths) {
    const at = join(root, path);
    const [content, { mode }] = await Promise.all([readFile(at), stat(at)]);
    const hash = blobHashOf(content);
    bytes += content.length;
    if (bytes > codeBytes || files.length >= codeFiles) {
      throw fail(`is more than ${codeFiles} files or ${codeBytes} bytes`);
    }
    files.push({ path, hash, size: content.length, executable: (mode & 0o100) !== 0 });
    blobs.set(hash, content);
  }
  if (files.length === 0) throw fail('has no files');
  const manifest = Buffer.from(manifestText({ version: 1, files, links: [], folders: [] }));
  const bundle = blobHashOf(manifest);
  blobs.set(bundle, manifest);
  return { bundle, blobs };
}

/** Neither what is hidden nor what Python left; links are not followed. */
async function codePaths(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((path) => !path.split('/').some((part) => /^(\.|__pycache__$)/.test(part)))
    .toSorted();
}
