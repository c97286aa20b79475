/** How clients name the task they want to look into. */
import { taskId, type JobId } from '../../model/ids.ts';

/** A job stands for its first task. */
export function taskOf(target: string): string {
  return /\.\d+$/.test(target) ? target : taskId(target as JobId, 0);
}
