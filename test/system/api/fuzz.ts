/** schemathesis against the real thing: no 5xx, no status and no shape that is not described. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { SCOPES } from '../../../src/model/token.ts';
import { apiPython } from '../../support/python.ts';
import { unexpectedErrorsIn } from '../../support/problems.ts';
import { until } from '../../support/wait.ts';
import type { ApiWorld } from './world.ts';

const run = promisify(execFile);
const HERE = import.meta.dirname;
/** `make fuzz-api MINUTES=…`; else as many cases as a test may take. */
const MINUTES = Number(process.env['FUZZ_MINUTES'] ?? 0);
const SEED = process.env['FUZZ_SEED'] ?? '1';
const SECONDS = MINUTES > 0 ? MINUTES * 60 : 40;
/** Cases of each operation in a phase. */
const EXAMPLES = MINUTES > 0 ? 50 * MINUTES : 3;
/** It looks at the clock between cases, and ends what it has begun. */
const LIMIT_MS = SECONDS * 1000 + 120_000;

export function fuzzSuite(worldOf: () => ApiWorld): void {
  describe('schemathesis', () => {
    test('finds nothing', { timeout: LIMIT_MS + 10_000 }, async () => {
      const bin = apiPython();
      if (bin === undefined) return;
      const output = await fuzz(worldOf(), bin);
      expect(output).toMatch(/Tested: \d+/);
      expect(failuresIn(output)).toBe('');
      expect(unexpectedErrorsIn(worldOf().server.process().output())).toEqual([]);
    });
  });
}

async function fuzz(world: ApiWorld, bin: string): Promise<string> {
  const { server, agent, things, alpha } = world;
  await world.cancelAll();
  await until('nothing runs', async () => {
    return (await server.client.listWorkers({})).items.every(({ attempts }) => attempts === 0);
  });
  // Random commands are accepted and must not run anywhere.
  await agent.stop();
  const user = 'fuzzer';
  const { secret, id } = await alpha.client.createToken({ user, scopes: [...SCOPES] });
  const config = ['--config-file', path.join(HERE, 'schemathesis.toml')];
  const limits = ['--max-examples', String(EXAMPLES), '--max-time', String(SECONDS)];
  const how = ['--seed', SEED, '--generation-database', 'none', '--no-color'];
  const env = {
    PATH: process.env['PATH'],
    HOME: server.root,
    DROVER_TOKEN: secret,
    FUZZ_TOKEN_ID: id,
    FUZZ_USER: user,
    FUZZ_JOB: things.endedJob,
    SCHEMATHESIS_HOOKS_FILE: path.join(HERE, 'hooks.py'),
  };
  const args = [...config, 'run', `${server.url}/openapi.json`, ...limits, ...how];
  const options = { cwd: server.root, env, timeout: LIMIT_MS, maxBuffer: 100_000_000 };
  try {
    return (await run(path.join(bin, 'schemathesis'), args, options)).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return stdout + stderr || String(error);
  }
}

/** Its own words for what is wrong; empty where nothing is. */
function failuresIn(output: string): string {
  const from = /^=+ (ERRORS|FAILURES) =+$/m.exec(output)?.index;
  return from === undefined ? '' : output.slice(from, from + 20_000);
}
