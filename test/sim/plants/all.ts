/** Every planted bug. */
import { AGENTS_PLANTS } from './agents.ts';
import { CHECKPOINT_PLANTS } from './checkpoints.ts';
import { DURABILITY_PLANTS } from './durability.ts';
import { AUDIT_PLANTS } from './audit.ts';
import { FAMILY_PLANTS } from './family.ts';
import { MACHINE_PLANTS } from './machines.ts';
import { MONEY_PLANTS } from './money.ts';
import { PLACEMENT_PLANTS } from './placement.ts';
import type { Plant } from './plant.ts';
import { SCHEDULE_PLANTS } from './schedule.ts';

export const PLANTS: readonly Plant[] = [
  ...DURABILITY_PLANTS,
  ...AGENTS_PLANTS,
  ...PLACEMENT_PLANTS,
  ...MONEY_PLANTS,
  ...SCHEDULE_PLANTS,
  ...CHECKPOINT_PLANTS,
  ...FAMILY_PLANTS,
  ...AUDIT_PLANTS,
  ...MACHINE_PLANTS,
];
