/** One thing as lines of name and value; empty values are left out. */
import type { CommandContext } from './command.ts';
import { colours } from './io.ts';
import { printable } from './table.ts';

export type Fact = [name: string, value: string, paint?: ((text: string) => string) | undefined];

export async function printFacts(context: CommandContext, facts: Fact[]): Promise<void> {
  const { dim } = colours(context.io, context.io.stdout);
  const shown = facts.filter(([, value]) => value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  const lines = shown.map(([name, value, paint]) => {
    const text = printable(value);
    return `${dim(name.padEnd(width))}  ${paint ? paint(text) : text}`;
  });
  await context.print(lines.join('\n'));
}
