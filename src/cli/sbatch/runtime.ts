/** The programs that travel with a job: what a batch script expects to find on its node. */
import { readFileSync } from 'node:fs';

/** Run by a shell as one word, so that the programs are in no list of processes. */
export const START = 'eval "$DROVER_SBATCH_START"';

/** Written out on the worker by `batch.sh`, which takes them off the environment again. */
export function runtimeVariables(severalNodes: boolean): Record<string, string> {
  const local = {
    DROVER_SBATCH_START: read(readFileSync(new URL('./runtime/batch.sh', import.meta.url), 'utf8')),
    DROVER_SBATCH_LIB: read(readFileSync(new URL('./runtime/lib.sh', import.meta.url), 'utf8')),
    DROVER_SBATCH_SRUN: read(readFileSync(new URL('./runtime/srun.sh', import.meta.url), 'utf8')),
    DROVER_SBATCH_SCONTROL: read(
      readFileSync(new URL('./runtime/scontrol.sh', import.meta.url), 'utf8'),
    ),
  };
  if (!severalNodes) return local;
  return {
    ...local,
    DROVER_SBATCH_STEPS: read(readFileSync(new URL('./runtime/steps.py', import.meta.url), 'utf8')),
    DROVER_SBATCH_STEP: read(readFileSync(new URL('./runtime/srun.py', import.meta.url), 'utf8')),
  };
}

/** Without the last line end, so that it reads well in YAML. */
function read(text: string): string {
  return text.trimEnd();
}
