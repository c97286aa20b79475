/**
 * The native half of node-pty: from its package, or out of the self-contained agent, which holds it
 * as bytes. The system loads such code from files only, so there it is one for a moment.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';

/** The part of the pinned version's native module that is used; a test runs each. */
interface NativeTerminal {
  fork(
    file: string,
    commandArguments: string[],
    env: string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    utf8: boolean,
    helperPath: string,
    onExit: (code: number, signal: number) => void,
  ): { fd: number; pid: number; pty: string };
  resize(fd: number, cols: number, rows: number): void;
}

let loaded: NativeTerminal | undefined;

export function loadNativeTerminal(): NativeTerminal {
  return (loaded ??= isSea() ? fromOwnFile() : fromPackage());
}

function fromPackage(): NativeTerminal {
  const binaries = createRequire(import.meta.url)('@lydell/node-pty/requireBinary.js') as {
    requireBinary(file: string): NativeTerminal;
  };
  return binaries.requireBinary('pty.node');
}

/** Code may not be run from every folder; where this very program lies it may. */
function fromOwnFile(): NativeTerminal {
  try {
    return loadBelow(tmpdir());
  } catch {
    return loadBelow(dirname(process.execPath));
  }
}

function loadBelow(place: string): NativeTerminal {
  const folder = mkdtempSync(join(place, 'drover-'));
  try {
    const file = join(folder, 'pty.node');
    writeFileSync(file, Buffer.from(getRawAsset('pty.node')), { mode: 0o700 });
    const module = { exports: {} as NativeTerminal };
    process.dlopen(module, file);
    return module.exports;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
