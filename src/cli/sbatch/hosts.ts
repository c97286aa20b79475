/** Slurm's lists of hosts: gpu[01-03,07],login1 is gpu01 gpu02 gpu03 gpu07 login1. */
import { UsageError } from '../args.ts';

/** So that a typo cannot fill the memory. */
const HOSTS_LIMIT = 4096;

export function expandHosts(text: string): string[] {
  const hosts = splitOutside(text).flatMap(expandOne);
  if (hosts.length <= HOSTS_LIMIT) return hosts;
  throw new UsageError(`${JSON.stringify(text)} is more than ${HOSTS_LIMIT} hosts`);
}

/** At commas that are in no bracket. */
function splitOutside(text: string): string[] {
  return text.match(/(?:\[[^\]]*\]?|[^,[])+/g) ?? [];
}

function expandOne(host: string): string[] {
  const match = /^([^[]*)\[([\d,-]+)\](.*)$/.exec(host);
  if (!match) {
    if (!/[[\]\s]/.test(host)) return [host];
    throw new UsageError(`${JSON.stringify(host)} is no list of hosts`, 'write gpu[01-04,09]');
  }
  const [, before, ranges, behind] = match as unknown as [string, string, string, string];
  const tails = expandOne(behind);
  return ranges.split(',').flatMap((range) => {
    const [first = '', last = first] = range.split('-');
    const count = Number(last) - Number(first) + 1;
    if (!(count >= 1 && count <= HOSTS_LIMIT)) {
      throw new UsageError(`${JSON.stringify(host)} is no list of hosts`, 'write gpu[01-04,09]');
    }
    const numbers = Array.from({ length: count }, (_, at) =>
      String(Number(first) + at).padStart(first.length, '0'),
    );
    return numbers.flatMap((number) => tails.map((tail) => `${before}${number}${tail}`));
  });
}
