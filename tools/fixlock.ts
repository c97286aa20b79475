/**
 * Completes package-lock.json: some registry mirrors lack packages of other platforms, npm then
 * leaves them out of the lock, and `npm ci` refuses a lock without them. `make lock` runs this.
 */
import { readFileSync, writeFileSync } from 'node:fs';

interface LockEntry {
  version?: string;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

export interface Lock {
  packages: Record<string, LockEntry>;
}

const OS = /\b(android|darwin|freebsd|linux|win32|windows|openharmony|netbsd|openbsd|sunos|aix)\b/;
const CPU = /\b(arm64|arm|x64|ia32|ppc64|riscv64|s390x|loong64|loongarch64|mips64el|wasm32)\b/;

/** Entries for optional packages that the lock names but does not hold, by their place. */
export function missingEntries(lock: Lock): Record<string, LockEntry> {
  const missing: Record<string, LockEntry> = {};
  for (const [at, entry] of Object.entries(lock.packages)) {
    for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
      const place = `node_modules/${name}`;
      if (lock.packages[place] || lock.packages[`${at}/${place}`]) continue;
      missing[place] = platformEntry(name, range, entry.dev === true);
    }
  }
  return missing;
}

/** Platform limits read off the name, so that npm never tries to fetch it elsewhere. */
function platformEntry(name: string, range: string, dev: boolean): LockEntry {
  const libc = name.includes('musl') ? 'musl' : /gnu/.test(name) ? 'glibc' : undefined;
  // In npm's own order of keys, so that its next write changes nothing.
  return {
    version: range.replace(/^[\^~]/, ''),
    cpu: [CPU.exec(name)?.[1] ?? 'none'],
    ...(dev ? { dev } : {}),
    ...(libc ? { libc: [libc] } : {}),
    optional: true,
    os: [OS.exec(name)?.[1]?.replace('windows', 'win32') ?? 'none'],
  };
}

export function completeLock<Kind extends Lock>(lock: Kind): Kind {
  const packages = { ...lock.packages, ...missingEntries(lock) };
  const sorted = Object.entries(packages).toSorted(([a], [b]) => a.localeCompare(b, 'en'));
  return { ...lock, packages: Object.fromEntries(sorted) };
}

if (import.meta.main) {
  const file = 'package-lock.json';
  const lock = JSON.parse(readFileSync(file, 'utf8')) as Lock;
  writeFileSync(file, `${JSON.stringify(completeLock(lock), null, 2)}\n`);
  console.log(`${file}: added ${Object.keys(missingEntries(lock)).length} platform packages`);
}
