/** Files of a running task as a stream of tar, through the same door as `drover exec`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { DroverError } from '../lib/errors.ts';

interface Inside {
  url: string;
  token: string;
}

/** What both sides say when something is wrong; more is cut. */
const COMPLAINT_BYTES = 4096;

/** Puts it at `scratch/copy`. */
export async function unpackFrom(inside: Inside, remote: string, scratch: string): Promise<void> {
  const { folder, name } = split(remote);
  const unpacked = path.join(scratch, 'unpacked');
  await mkdir(unpacked);
  const local = spawn('tar', ['-xf', '-', '-C', unpacked, '--no-same-owner'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const complaints = new Complaints();
  const ended = endOf(local, complaints);
  // A tar that ends early closes its end; its own words say why.
  local.stdin.on('error', () => undefined);
  const command = ['tar', '-cf', '-', '-C', folder, '--', name];
  const code = await run(inside, command, Readable.from([]), local.stdin, complaints);
  local.stdin.end();
  check('in the task', code, complaints);
  check('here', await ended, complaints);
  await rename(name === '.' ? unpacked : path.join(unpacked, name), path.join(scratch, 'copy'));
}

/** Unpacks beside its place and moves it there, or into a folder that exists. */
const RECEIVE = `set -e
if [ -d "$1" ]; then parent=$1 target=$1/$2; else parent=$(dirname -- "$1") target=$1; fi
scratch=$(mktemp -d "$parent/.drover-cp-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
tar -xf - -C "$scratch" --no-same-owner
if [ -d "$target" ]; then echo "$target exists" >&2; exit 1; fi
mv -f -- "$scratch/$2" "$target"`;

export async function packInto(inside: Inside, source: string, remote: string): Promise<void> {
  const name = path.basename(source);
  const local = spawn('tar', ['-cf', '-', '-C', path.dirname(source), '--', name], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Read from at once: what nobody listens to is thrown away when its process ends.
  const packed = local.stdout.pipe(new PassThrough());
  const complaints = new Complaints();
  const ended = endOf(local, complaints);
  const command = ['/bin/sh', '-c', RECEIVE, 'sh', remote, name];
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  try {
    const code = await run(inside, command, packed, nothing, complaints);
    check('in the task', code, complaints);
  } finally {
    // One that nobody reads from any more would wait for ever.
    local.stdout.destroy();
  }
  check('here', await ended, complaints);
}

/** The folder it lies in, and its name there; `.` where it is the folder itself. */
function split(remote: string): { folder: string; name: string } {
  const whole = path.posix.normalize(remote).replace(/(?<=.)\/$/, '');
  const name = path.posix.basename(whole);
  const isItself = name === '' || name === '.' || name === '..';
  return isItself ? { folder: whole, name: '.' } : { folder: path.posix.dirname(whole), name };
}

class Complaints extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.text.length < COMPLAINT_BYTES) this.text += chunk.toString();
    done();
  }
}

async function run(
  { url, token }: Inside,
  command: string[],
  stdin: Readable,
  stdout: Writable,
  stderr: Writable,
): Promise<number> {
  // Loaded when used: no other command needs the tunnel.
  const { runExec } = await import('./exec.ts');
  return runExec({ url, token, command, tty: false, stdin, stdout, stderr });
}

async function endOf(child: ChildProcess, complaints: Complaints): Promise<number> {
  child.stderr!.pipe(complaints, { end: false });
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

function check(where: string, code: number, { text }: Complaints): void {
  if (code === 0) return;
  const said = text.trim().split('\n')[0] || `tar ended with ${code}`;
  throw new DroverError('NOT_FOUND', `it could not be copied; ${where}: ${said}`, {
    hint: 'see what is there with: drover exec ID -- ls -l',
  });
}
