/** The wake FIFO: shims write an attempt's uid into it when the attempt started or ended. */
import { spawnSync } from 'node:child_process';
import { constants, openSync, rmSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { DroverError } from '../../lib/errors.ts';

export interface Wake {
  close(): void;
}

/**
 * Messages may be lost (nobody listened) or come twice; they only say where to look. Opened for
 * reading and writing, so that it never reports an end when the last shim closes it.
 */
export function openWake(path: string, woken: (uid: string) => void): Wake {
  if (!statSync(path, { throwIfNoEntry: false })?.isFIFO()) {
    rmSync(path, { force: true });
    const made = spawnSync('mkfifo', ['-m', '600', path], { encoding: 'utf8' });
    if (made.status !== 0) {
      const why = made.error?.message ?? made.stderr.trim();
      throw new DroverError('UNAVAILABLE', `cannot make the FIFO ${path}: ${why}`, {
        hint: 'Choose a data folder on a local disk, and see that coreutils are installed.',
      });
    }
  }
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const socket = new Socket({ fd, readable: true, writable: false });
  socket.unref();
  socket.setEncoding('latin1');
  let rest = '';
  socket.on('data', (text) => {
    const lines = (rest + String(text)).split('\n');
    rest = lines.pop() ?? '';
    for (const uid of new Set(lines)) woken(uid);
  });
  return { close: () => socket.destroy() };
}
