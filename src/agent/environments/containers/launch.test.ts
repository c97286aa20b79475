/** How each runtime is called: what it shows, what it hides, and that no secret is an argument. */
import { describe, expect, test } from 'vitest';
import { apptainerLaunch } from './apptainer.ts';
import type { Container } from './container.ts';
import { enrootLaunch } from './enroot.ts';
import { clientEnvironment, type ContainerHost, type ContainerRuntime } from './host.ts';
import { ociLaunch } from './oci.ts';

const host = (runtime: ContainerRuntime, more: Partial<ContainerHost> = {}): ContainerHost => ({
  runtime,
  program: `/usr/bin/${runtime}`,
  version: '1',
  sharesCgroup: false,
  hasInit: true,
  rootless: false,
  ...more,
});

const container: Container = {
  name: 'drover-u1',
  uid: 'u1',
  agent: 'a1',
  image: 'sha256:1',
  command: ['python', 'train.py', '--lr', '0.1'],
  workdir: '/data/attempts/u1/work',
  home: '/data/attempts/u1',
  env: { API_KEY: 'hunter2!', HOME: '/inside', LINES: 'a\nb', DOCKER_TOKEN: 'opensesame' },
  mounts: [
    { source: '/data/attempts/u1/work', readOnly: false },
    { source: '/data,odd/set', readOnly: true },
  ],
  gpus: [3, 1],
  shmBytes: 8_000_000,
  cpuMillis: 2500,
  memoryBytes: 1_000_000,
  user: { uid: 1000, gid: 100 },
};
const client = { PATH: '/usr/bin', HOME: '/var/lib/agent' };

/** Where a flag's value is. */
const after = (words: string[], flag: string): string[] =>
  words.flatMap((word, at) => (word === flag ? [words[at + 1]!] : []));

describe.each([
  ['podman', ociLaunch],
  ['docker', ociLaunch],
  ['apptainer', apptainerLaunch],
  ['enroot', enrootLaunch],
] as const)('%s', (runtime, launchBy) => {
  const { command, env, enter, files } = launchBy(host(runtime), container, client);

  test('the command is the last, as it was; no secret is among the words', () => {
    expect(command.slice(-4)).toEqual(container.command);
    const words = [...command, ...enter.piped, ...enter.terminal].join(' ');
    for (const secret of ['hunter2!', 'opensesame']) expect(words).not.toContain(secret);
  });

  test('what the runtime itself heeds stays the machine’s', () => {
    expect(env).toMatchObject(client);
    expect(env['DOCKER_TOKEN']).toBeUndefined();
    expect(JSON.stringify([env, files])).toContain('opensesame');
  });
});

describe('docker and podman', () => {
  const podman = ociLaunch(host('podman'), container, client);
  const docker = ociLaunch(host('docker'), container, client);

  test('limits, shared memory, user, mounts and a label by which it is found', () => {
    for (const { command } of [podman, docker]) {
      expect(command).toContain('--cpus=2.5');
      expect(command).toContain('--memory=1000000b');
      expect(command).toContain('--shm-size=8000000');
      expect(command).toContain('--network=host');
      expect(command).toContain('--init');
      expect(after(command, '--user')).toEqual(['1000:100']);
      expect(after(command, '--label')).toContain('drover.attempt=u1');
      expect(after(command, '--mount')).toEqual([
        'type=bind,source=/data/attempts/u1/work,target=/data/attempts/u1/work',
        'type=bind,"source=/data,odd/set","target=/data,odd/set",readonly',
      ]);
    }
    expect(podman.files['container.env']).toBe('HOME=/inside\nDOCKER_TOKEN=opensesame\n');
  });

  test('GPUs: its own only, counted from 0 inside, in the order asked for', () => {
    expect(after(podman.command, '--device')).toEqual(['nvidia.com/gpu=3', 'nvidia.com/gpu=1']);
    expect(after(docker.command, '--gpus')).toEqual(['"device=3,1"']);
    for (const { env } of [podman, docker]) expect(env['CUDA_VISIBLE_DEVICES']).toBe('1,0');
  });

  test('podman in the attempt’s own cgroup, without an init, as a plain user', () => {
    const shares = ociLaunch(host('podman', { sharesCgroup: true }), container, client).command;
    expect(shares).toContain('--cgroups=disabled');
    expect(shares.join(' ')).not.toContain('--memory');
    const plain = host('podman', { hasInit: false, rootless: true });
    const words = ociLaunch(plain, container, client).command;
    expect(words).toContain('--pid=host');
    expect(words).toContain('--userns=keep-id');
  });

  test('several lines of what only a file could hand over are refused', () => {
    const odd = { ...container, env: { DOCKER_X: 'a\nb' } };
    expect(() => ociLaunch(host('docker'), odd, client)).toThrow(/DOCKER_X cannot have several/);
  });

  test('a command inside, with and without a terminal', () => {
    const { piped, terminal } = docker.enter;
    expect(piped).toEqual(['/usr/bin/docker', 'exec', '-i', '-w', container.workdir, 'drover-u1']);
    expect(terminal).toContain('-t');
  });
});

test('apptainer: variables by prefix, the old name too, and the driver of the GPUs', () => {
  const { command, env } = apptainerLaunch(host('apptainer'), container, client);
  expect(env['APPTAINERENV_API_KEY']).toBe('hunter2!');
  expect(env['APPTAINERENV_HOME']).toBeUndefined();
  expect(after(command, '--home')).toEqual(['/inside']);
  expect(after(command, '--no-mount')).toEqual(['home,tmp,cwd,hostfs']);
  expect(after(command, '--mount')[0]).toBe(
    'type=bind,source=/data/attempts/u1/tmp,destination=/tmp',
  );
  expect(command).toContain('--nv');
  const old = { ...host('apptainer'), program: '/usr/bin/singularity' };
  expect(apptainerLaunch(old, container, client).env['SINGULARITYENV_API_KEY']).toBe('hunter2!');
});

test('enroot: its own start script instead of the image’s entrypoint', () => {
  const one = { ...container, image: '/data/environments/k/image' };
  const { command, env, files } = enrootLaunch(host('enroot'), one, client);
  expect(env['ENROOT_DATA_PATH']).toBe('/data/environments/k');
  expect(env['NVIDIA_VISIBLE_DEVICES']).toBe('1,3');
  expect(after(command, '--rc')).toEqual(['/data/attempts/u1/container.rc']);
  expect(files['container.rc']).toContain("export HOME='/inside'\n");
  expect(after(command, '--mount')[1]).toBe('/data,odd/set:/data,odd/set:x-create=auto,rbind,ro');
});

test('of the agent’s environment a runtime gets what is meant for it, and no tokens', () => {
  const all = { PATH: '/bin', DOCKER_HOST: 'unix:///d', DROVER_TOKEN: 'x', AWS_SECRET: 'y' };
  expect(clientEnvironment(all)).toEqual({ PATH: '/bin', DOCKER_HOST: 'unix:///d' });
});
