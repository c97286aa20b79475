/** What is said to hosts, to every kind of `sh` that they may have. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { hostScript, launchWords } from '../../src/providers/ssh/hostScript.ts';
import { parseReport } from '../../src/providers/ssh/report.ts';
import { programsAreHere } from '../support/programs.ts';
import { until } from '../support/wait.ts';

const SHELLS = { dash: 'dash', bash: 'bash', busybox: 'busybox-static' };

test.runIf(programsAreHere(SHELLS)).each(['dash', 'bash', 'busybox sh'])(
  'a host whose sh is %s',
  async (shell) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'drover-host-'));
    const place = { root: path.join(folder, 'r'), cluster: 'c', pool: 'a/b', host: 'h' };
    const [program = '', ...words] = shell.split(' ');
    const say = (verb: 'look' | 'launch' | 'stop', more: Record<string, string> = {}) => {
      const args = [...words, '-c', hostScript(verb, place, more)];
      // A bash that hears a socket takes itself for a login, and reads its .bashrc, unless nested.
      const env = { PATH: process.env['PATH'], SHLVL: '5' };
      return spawnSync(program, args, { encoding: 'utf8', env });
    };
    const look = () => parseReport(say('look').stdout)!.instance;
    const agent = { url: 'http://x', authorities: 'PEM', selfDestructAfterMs: 0 };
    const { variables } = launchWords({
      ...{ label: 'i1', joinToken: 't', agent, host: 'h', pool: 'a/b', resources: '' },
      ...{ agentCommand: 'exec sleep 300', version: '1' },
    });
    expect(look()).toBeNull();
    expect(say('launch', variables)).toMatchObject({ status: 0, stderr: '' });
    expect(look()).toMatchObject({ label: 'i1', state: 'running', version: '1' });
    expect(say('launch', { ...variables, label: 'i2' }).status).toBe(3);
    expect(say('stop', { label: 'i2' })).toMatchObject({ status: 0 });
    expect(look()).toMatchObject({ state: 'running' });
    expect(say('stop', { label: 'i1' })).toMatchObject({ status: 0, stderr: '' });
    await until('it is gone', () => look() === null);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  },
);
