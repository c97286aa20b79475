/** Wires the simulator: the engine, and the readers of what people write. */
import { performance } from 'node:perf_hooks';
import { parseResources } from '../agent/devices/parse.ts';
import { parseDuration } from '../cli/durations.ts';
import { toSpec } from '../cli/jobDraft.ts';
import { parseCpus, parseMemory } from '../cli/resources.ts';
import { createSimulate } from '../control/simulate/simulate.ts';
import type { Readers } from '../control/simulate/readers.ts';

export const readers: Readers = {
  spec: (draft) => toSpec(draft, { cwd: '/', env: {}, label: (key) => key }),
  durationMs: parseDuration,
  memoryBytes: parseMemory,
  cpuMillis: parseCpus,
  devices: (text) => (text === '0' ? [] : (parseResources(`gpus=${text}`).devices ?? [])),
};

export const simulate = createSimulate(readers, () => performance.now());
