/** The Python SDK as its users get it: installed by pip, then its own tests, types and style. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { ROOT } from '../support/journey.ts';

const SDK = path.join(ROOT, 'sdk/python');
const INSTALL_LIMIT_MS = 300_000;

/** The folder of the programs of a virtual environment. */
let programs: string;

/** Fails with what the program said. */
async function run(program: string, args: string[], cwd = SDK): Promise<string> {
  const options = { cwd, env: { ...process.env, DROVER_LOG_LEVEL: 'info' } };
  try {
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    const said = `${stdout ?? ''}${stderr ?? ''}` || String(error);
    throw new Error(`${path.basename(program)} ${args.join(' ')} failed:\n${said}`, {
      cause: error,
    });
  }
}

/** Made once per version of Python and list of packages: it takes half a minute. */
async function environment(): Promise<string> {
  const version = await run('python3', ['-c', 'import sys; print(sys.version, sys.prefix)']);
  const packages = readFileSync(path.join(SDK, 'pyproject.toml'));
  const key = createHash('sha256').update(version).update(packages).digest('hex').slice(0, 16);
  const folder = path.join(ROOT, '.cache/python', key);
  const bin = path.join(folder, 'bin');
  const complete = path.join(folder, 'complete');
  if (!existsSync(complete)) {
    await run('python3', ['-m', 'venv', '--clear', folder]);
    await run(path.join(bin, 'pip'), ['install', '-q', '.[test]', 'flit_core']);
    writeFileSync(complete, '');
  }
  return bin;
}

beforeAll(async () => {
  programs = await environment();
  const again = ['--no-deps', '--no-build-isolation', '--force-reinstall'];
  await run(path.join(programs, 'pip'), ['install', '-q', ...again, '.']);
}, INSTALL_LIMIT_MS);

test('its tests pass against a real server', async () => {
  const said = await run(path.join(programs, 'python'), ['-m', 'pytest']);
  const count = Number(/(\d+) passed/.exec(said)?.[1] ?? 0);
  console.log(`sdk/python: ${count} tests passed`);
  expect(count).toBeGreaterThan(0);
  expect(said).not.toMatch(/skipped|xfailed/);
}, 300_000);

test('its types hold, strictly, and its style', async () => {
  const cache = path.join(ROOT, '.cache/mypy');
  expect(await run(path.join(programs, 'mypy'), ['--cache-dir', cache])).toContain('Success');
  const noCache = ['--no-cache', '.', path.join(ROOT, 'examples/python')];
  await run(path.join(programs, 'ruff'), ['check', ...noCache]);
  await run(path.join(programs, 'ruff'), ['format', '--check', ...noCache]);
});
