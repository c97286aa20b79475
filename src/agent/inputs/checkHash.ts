/** Whether what came is what was asked for. */
import type { InputSpec } from '../../model/jobParts.ts';
import { Unprepared } from '../runtimes/around.ts';

export function checkHash({ name, hash }: InputSpec, found: string): void {
  if (hash === '' || hash === found) return;
  throw new Unprepared(
    `input ${name} is not what it was: it has the hash ${found}, asked for was ${hash}`,
  );
}
