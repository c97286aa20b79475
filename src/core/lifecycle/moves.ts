/**
 * How states change: by a named move from a table. An illegal move throws; it is a bug, not an
 * input.
 */

interface Move<State extends string> {
  from: readonly State[];
  to: State;
}

export type Moves<State extends string> = Record<string, Move<State>>;

export function moved<State extends string, Table extends Moves<State>>(
  table: Table,
  name: keyof Table & string,
  from: State,
): State {
  const move = table[name];
  if (!move?.from.includes(from)) throw new Error(`illegal move ${name} from ${from}`);
  return move.to;
}
