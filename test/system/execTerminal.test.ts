/** `runExec` in a real local terminal: raw while it runs, as it was afterwards. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execUrl } from '../../src/protocol/tunnel/execClient.ts';
import { startInTerminal } from '../../src/agent/tunnel/terminal.ts';
import type { ExecProcess } from '../../src/agent/tunnel/execProcess.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { TOKEN, tunnelWorld, type TunnelWorld } from './tunnelWorld.ts';

let world: TunnelWorld;
beforeAll(async () => {
  world = await tunnelWorld();
});
afterAll(() => world.close());

interface Screen {
  local: ExecProcess;
  seen: string;
  type(text: string): Promise<void>;
  until(text: string | RegExp): Promise<void>;
}

/** A local shell that runs the client and then shows whether the terminal is as it was. */
function localTerminal(command: string[], cols: number, rows: number): Screen {
  const client = import.meta.resolve('../../src/cli/exec.ts');
  const script = `
    const { runExec } = await import(${JSON.stringify(client)});
    const url = ${JSON.stringify(execUrl(world.url, 'j1'))};
    const command = ${JSON.stringify(command)};
    try {
      process.exitCode = await runExec({ url, token: ${JSON.stringify(TOKEN)}, command });
    } catch (error) {
      console.error(error.code, error.message);
      process.exitCode = 1;
    }
  `;
  const shell = 'stty -a > before; "$@"; echo "left with $?"; stty -a | cmp - before && echo same';
  const local = startInTerminal(
    {
      command: ['sh', '-c', shell, 'sh', process.execPath, '--input-type=module', '-e', script],
      cwd: world.folder,
      env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm' },
      cols,
      rows,
    },
    systemClock,
  );
  const screen: Screen = {
    local,
    seen: '',
    type: (text) => local.write(Buffer.from(text)),
    async until(text) {
      const isThere = (): boolean =>
        typeof text === 'string' ? screen.seen.includes(text) : text.test(screen.seen);
      await expect
        .poll(isThere, { timeout: 10_000, message: `${String(text)} on the screen` })
        .toBe(true);
    },
  };
  local.outputs[0]!.readable.on('data', (bytes: Buffer) => (screen.seen += bytes.toString()));
  local.outputs[0]!.readable.on('error', () => {});
  return screen;
}

test('size, keys, resize and exit code pass; the terminal is given back', async () => {
  const screen = localTerminal(['bash', '--norc', '--noprofile', '-i'], 90, 20);
  await screen.until(/[#$] $/);
  await screen.type('stty size; echo "TERM=$TERM"\r');
  await screen.until('20 90');
  await screen.until('TERM=xterm');
  await screen.type('sleep 100\r');
  await new Promise((resolve) => setTimeout(resolve, 300));
  await screen.type('\x03');
  await screen.until('^C');
  screen.local.resize(111, 33);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await screen.type('stty size\r');
  await screen.until('33 111');
  screen.local.resize(90, 20);
  await screen.type('exit 17\r');
  await screen.until('left with 17');
  await screen.until('same');
});

test('Enter ~ . leaves a command that does not answer', async () => {
  const screen = localTerminal(['sh', '-c', 'trap "" INT; echo stuck; sleep 100'], 80, 24);
  await screen.until('stuck');
  await screen.type('\r~.');
  await screen.until('left with 129');
  await screen.until('same');
});

test('an agent that goes away: an error, a code, and the terminal as it was', async () => {
  const screen = localTerminal(['sh', '-c', 'echo up; sleep 100'], 80, 24);
  await screen.until('up');
  world.dialer.endAttempt('uid-1');
  await screen.until('NOT_FOUND attempt uid-1 ended');
  await screen.until('left with 1');
  await screen.until('same');
});
