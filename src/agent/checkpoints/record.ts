/** What is known of an attempt's checkpoints, on disk beside it: for the next agent, and cheap. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest, ManifestFile } from '../../model/manifest.ts';
import { replaceFile } from '../runtimes/folder.ts';
import type { FileIdentity } from '../folders/storeFiles.ts';

export const CHECKPOINT_FOLDER = 'checkpoint';
const RECORD_FILE = 'checkpoint.json';

export interface Known {
  identity: FileIdentity;
  file: ManifestFile;
}

export interface Record {
  /** The last that was committed or restored; what does not count now stays as it is there. */
  manifest: Manifest;
  /** By path: files whose content is stored, so that they are not read again. */
  known: { [path: string]: Known };
}

export const NOTHING: Manifest = { version: 1, files: [], links: [], folders: [] };

export function readRecord(home: string): Record {
  try {
    return JSON.parse(readFileSync(join(home, RECORD_FILE), 'utf8')) as Record;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    // Cut short by a power failure: everything is looked at anew.
    if (!missing && !(error instanceof SyntaxError)) throw error;
    return { manifest: NOTHING, known: {} };
  }
}

export function writeRecord(home: string, record: Record): void {
  replaceFile(join(home, RECORD_FILE), JSON.stringify(record));
}
