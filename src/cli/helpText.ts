/** The help of one command, made from its table of options. */
import type { Option, OptionTable } from './args.ts';

interface Described {
  summary: string;
  usage: string[];
  options: OptionTable;
  details?: string;
}

export function commandHelp(command: Described): string {
  const lines = [
    command.summary,
    '',
    ...command.usage.map((line, at) => `${at === 0 ? 'usage:' : '      '} drover ${line}`),
    '',
    ...optionLines(command.options),
  ];
  if (command.details) lines.push('', command.details);
  return `${lines.join('\n')}\n`;
}

function optionLines(options: OptionTable): string[] {
  const rows = Object.entries(options).map(([name, option]) => [forms(name, option), option.help]);
  const width = Math.max(...rows.map(([form]) => form!.length));
  return rows.map(([form, help]) => `  ${form!.padEnd(width)}  ${help}`);
}

function forms(name: string, option: Option): string {
  const short = option.short ? `-${option.short}, ` : '';
  const alias = option.alias ? `, --${option.alias}` : '';
  const value = option.kind === 'flag' ? '' : ` ${option.value ?? 'VALUE'}`;
  return `${short}--${name}${alias}${value}`;
}
