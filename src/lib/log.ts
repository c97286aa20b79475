/** Structured logs: one JSON line per event, with ids; secrets are redacted by key. */
import { pino } from 'pino';

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

const SECRET_KEYS = ['token', 'secret', 'password', 'authorization', 'ticket', 'joinToken'];

export function createLog(
  part: string,
  level: string = process.env['DROVER_LOG_LEVEL'] ?? 'info',
): Log {
  const paths = SECRET_KEYS.flatMap((key) => [key, `*.${key}`]);
  return pino(
    { level, base: { part, pid: process.pid }, redact: { paths, censor: '[redacted]' } },
    pino.destination({ dest: 2, sync: true }),
  );
}

/** For tests and the simulator. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
