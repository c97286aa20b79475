/** Programs of Debian packages that a test drives. `make system-packages` installs them. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * By program the package it is in. False when one is missing, said out loud; with CI=true that is
 * an error.
 */
export function programsAreHere(packages: Record<string, string>): boolean {
  const missing = Object.keys(packages).filter((program) => !isHere(program));
  if (missing.length === 0) return true;
  const names = [...new Set(missing.map((program) => packages[program]))].join(' ');
  const message = `not installed: ${missing.join(', ')} (make system-packages; package ${names})`;
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED, ${message}`);
  return false;
}

function isHere(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
