/**
 * Values as people write them on the command line and in job files. Their readers belong to the
 * command line and the agent, so they are passed in.
 */
import type { Device } from '../../model/resources.ts';
import type { SubmittedSpec } from '../../protocol/jobSpec.ts';

export interface Readers {
  /** A job as `drover submit -f` takes it. */
  spec: (draft: Record<string, unknown>) => SubmittedSpec;
  /** 90s, 45m, 1h30m, 1-00:00:00. */
  durationMs: (text: string, what: string) => number;
  /** 512M, 64G. */
  memoryBytes: (text: string, what: string) => number;
  /** 4, 0.5, 500m. */
  cpuMillis: (text: string, what: string) => number;
  /** 8, 8:A100, 8:A100:80G. */
  devices: (text: string) => Device[];
}
