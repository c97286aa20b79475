/**
 * A Linux machine with next to nothing on it: busybox, the libraries that every glibc system has,
 * no Node and nothing of the repository. It shares processes and network with the tests.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { type, type Typed } from './journey.ts';

/** What the agent and its script call. */
const TOOLS =
  'cat chmod cut echo env find grep gzip head id kill ls mkdir mkfifo mv rm rmdir setsid ' +
  'sha256sum sh sleep test touch tr tty uname wget';

export interface BareMachine {
  root: string;
  /** Runs a line of shell there, as a person would type it. */
  run(line: string, env?: Record<string, string>): Typed;
}

/** With the libraries of these programs, which all come with glibc and its compiler. */
export function makeBareMachine(root: string, programs: string[]): BareMachine {
  for (const folder of ['bin', 'proc', 'dev', 'tmp', 'worker']) {
    mkdirSync(path.join(root, folder), { recursive: true });
  }
  copyFileSync('/bin/busybox', path.join(root, 'bin/busybox'));
  for (const tool of TOOLS.split(' ')) symlinkSync('busybox', path.join(root, 'bin', tool));
  for (const library of librariesOf(programs)) {
    mkdirSync(path.join(root, path.dirname(library)), { recursive: true });
    copyFileSync(realpathSync(library), path.join(root, library));
  }
  const enter =
    `mount --rbind /proc '${root}/proc' && mount --rbind /dev '${root}/dev' && ` +
    `exec chroot '${root}' /bin/sh -c "$1"`;
  const apart = process.getuid?.() === 0 ? ['--mount'] : ['--mount', '--map-root-user'];
  return {
    root,
    run(line, env = {}) {
      const args = [...apart, '--propagation', 'private', 'sh', '-c', enter, 'sh', line];
      return type('/usr/bin/unshare', args, {
        env: { PATH: '/bin:/usr/bin:/sbin:/usr/sbin', HOME: '/worker', ...env },
      });
    },
  };
}

function librariesOf(programs: string[]): string[] {
  const listed = execFileSync('ldd', programs).toString();
  return [...listed.matchAll(/\/\S+\.so[.\d]*(?= \()/g)].map(([file]) => file);
}
