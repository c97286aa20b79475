/**
 * One command said to a `sh` that some child process leads to. First `sh` says that it is there,
 * only then the command is sent, as one line; its exit code comes after its output, between marks.
 * So it is always known whether a command was sent, words that a login shell prints are not taken
 * for output, and 255 of a command is not taken for a failure of `ssh`.
 */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { Readable } from 'node:stream';
import type { Clock, Timer } from '../../lib/clock.ts';
import { commandLine } from './quote.ts';
import type { RunResult } from './contract.ts';

/** What one command may print: a list of every job of a large site is a few MiB. */
export const OUTPUT_BYTES = 32 * 1024 * 1024;
/** What is read of errors; the rest is dropped. */
const ERROR_BYTES = 256 * 1024;
/** After the exit code, for errors that are still on their way. */
const TRAILING_MS = 50;
const LONGEST_MARK = 200;
/** Stands for a line break on the way: a `read` ends at the first. */
const LINE_BREAK = '\u0001';

/** A line for any login shell: single quotes mean the same in sh, csh and fish. */
export function listen(mark: string): string {
  return (
    `exec /bin/sh -c 'echo ${mark} ready; IFS= read -r line; ` +
    `eval "$(printf %s "$line" | tr "\\001" "\\n")"'`
  );
}

export interface Conversation {
  child: ChildProcessWithoutNullStreams;
  /** The word given to `listen`; unlike anything that is printed. */
  mark: string;
  command: string | readonly string[];
  stdin: string | Uint8Array | Readable | undefined;
  timeoutMs: number;
  /** Ends the child, and on this machine what it started. */
  stop: () => void;
  clock: Clock;
}

/** How it ended; or that it never began, with what the child said on its errors. */
export type Outcome =
  | Extract<RunResult, { kind: 'ended' | 'lost' }>
  | { kind: 'unsaid'; late: boolean; stderr: string; code: number | null };

export function converse(conversation: Conversation): Promise<Outcome> {
  return new Promise((resolve) => new Talk(conversation, resolve));
}

class Talk {
  readonly #conversation: Conversation;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #limit: Timer;
  #stdout: Buffer[] = [];
  #bytes = 0;
  #stderr = '';
  #sent = false;
  #tail: Buffer = Buffer.alloc(0);
  #told: { code: number; stdout: string } | undefined;

  constructor(conversation: Conversation, resolve: (outcome: Outcome) => void) {
    this.#conversation = conversation;
    this.#resolve = resolve;
    const { child, clock, timeoutMs } = conversation;
    this.#limit = clock.setTimer(timeoutMs, () => this.#end(`no end within ${timeoutMs} ms`, true));
    child.stdin.on('error', () => undefined); // It may end without reading; its end is heard below.
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(0, ERROR_BYTES);
    });
    child.on('error', (error) => {
      this.#stderr += error.message;
      this.#end(error.message, false);
    });
    child.on('close', (code, signal) => {
      const how = signal ? `signal ${signal}` : `code ${code}`;
      this.#end(`the connection ended (${how})${said(this.#stderr)}`, false, code);
    });
  }

  #read(chunk: Buffer): void {
    if (this.#told) return;
    this.#bytes += chunk.length;
    this.#stdout.push(chunk);
    if (this.#bytes > OUTPUT_BYTES) this.#end(`it printed more than ${OUTPUT_BYTES} bytes`, false);
    else if (!this.#sent) this.#awaitReady();
    else this.#awaitEnd(chunk);
  }

  #awaitReady(): void {
    const { mark, child, command, stdin } = this.#conversation;
    const ready = `${mark} ready\n`;
    const seen = Buffer.concat(this.#stdout);
    const at = seen.indexOf(ready);
    if (at < 0) return;
    this.#stdout = [];
    this.#sent = true;
    const body = `(\n${commandLine(command)}\n)\nprintf '\\n%s %s\\n' '${mark} end' "$?"`;
    child.stdin.write(`${body.replaceAll('\n', LINE_BREAK)}\n`);
    if (stdin instanceof Readable) {
      stdin.on('error', (error) => this.#end(`what it reads broke off: ${error.message}`, false));
      stdin.pipe(child.stdin);
    } else child.stdin.end(stdin ?? '');
  }

  /** The mark can lie across chunks, so a piece of what came before is looked at again. */
  #awaitEnd(chunk: Buffer): void {
    const { mark, clock } = this.#conversation;
    const before = this.#tail;
    this.#tail = Buffer.concat([before, chunk]).subarray(-LONGEST_MARK);
    const text = Buffer.concat([before, chunk]).toString('latin1');
    const end = new RegExp(String.raw`\n${mark} end (\d+)\n`).exec(text);
    if (!end) return;
    const all = Buffer.concat(this.#stdout);
    const at = all.length - text.length + end.index;
    this.#told = { code: Number(end[1]), stdout: all.subarray(0, at).toString() };
    // Something it left in the background may hold the streams open for ever.
    clock.setTimer(TRAILING_MS, () => this.#end('', false));
  }

  #end(reason: string, late: boolean, code: number | null = null): void {
    this.#limit.cancel();
    const stderr = this.#stderr.trim();
    if (this.#told) this.#resolve({ kind: 'ended', ...this.#told, stderr });
    else if (this.#sent) this.#resolve({ kind: 'lost', reason });
    else this.#resolve({ kind: 'unsaid', late, stderr, code });
    this.#conversation.stop();
  }
}

function said(stderr: string): string {
  const last = stderr.trim().split('\n').at(-1);
  return last ? `: ${last.slice(0, 500)}` : '';
}
