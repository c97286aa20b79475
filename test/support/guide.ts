/** A page of docs/ that is typed from the top to the bottom: its commands, and what they show. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { ROOT, type, type TypeOptions } from './journey.ts';

const LIMIT_MS = 150_000;

interface Step {
  line: number;
  commands: string;
  shown: string[];
}

export interface Guide {
  /** Each block of commands, with what the block of text after it shows. */
  steps: Step[];
  /** Blocks of YAML, in their order. */
  settings: string[];
}

export function readGuide(name: string): Guide {
  const page = readFileSync(path.join(ROOT, 'docs', name), 'utf8');
  const guide: Guide = { steps: [], settings: [] };
  for (const { 1: kind, 2: text = '', index } of page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)) {
    const line = page.slice(0, index).split('\n').length;
    if (kind === 'sh') guide.steps.push({ line, commands: text, shown: [] });
    else if (kind === 'text') guide.steps.at(-1)?.shown.push(...text.trim().split('\n'));
    else if (kind === 'yaml') guide.settings.push(text);
  }
  return guide;
}

/** In one shell for all, so that variables stay; every line that the page shows must come. */
export async function follow(
  steps: readonly Step[],
  options: TypeOptions & { replace?: Record<string, string>; atTheEnd?: string; limitMs?: number },
): Promise<void> {
  // Marks tell the blocks apart.
  let script = steps.map(({ commands, line }) => `echo "== ${line}"\n${commands}`).join('');
  for (const [from, to] of Object.entries(options.replace ?? {})) {
    script = script.replaceAll(from, to);
  }
  const all = `exec 2>&1\n${script}\n${options.atTheEnd ?? ''}`;
  const shell = type('/bin/bash', ['-e', '-c', all], options);
  // So that a command that hangs is seen in what is shown until then.
  const limit = setTimeout(() => shell.child.kill('SIGKILL'), options.limitMs ?? LIMIT_MS);
  const { stdout } = await shell.ended;
  clearTimeout(limit);
  const parts = new Map(
    stdout
      .split(/^== /m)
      .slice(1)
      .map((part) => [Number(part.split('\n', 1)[0]), part]),
  );
  for (const { line, shown } of steps) {
    const output = parts.get(line);
    expect(output, `the block at line ${line} was reached:\n${stdout}`).toBeDefined();
    for (const text of shown) expect(output).toMatch(patternOf(text));
  }
}

/** `…` stands for anything on the line. */
function patternOf(text: string): RegExp {
  const parts = text
    .split('…')
    .map((part) => part.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(parts.join('.*'));
}
