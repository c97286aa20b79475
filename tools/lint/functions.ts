/**
 * A lint rule that counts a function's own lines: functions within it count for themselves, so that
 * a factory returning ten short functions is measured as the class it stands for.
 */

const MOST_LINES = 70;

interface Node {
  type: string;
  loc: { start: { line: number }; end: { line: number } };
}
interface Context {
  report(problem: { node: Node; message: string }): void;
}

const ownLines = {
  create(context: Context): Record<string, (node: Node) => void> {
    /** Lines taken by inner functions, for each function that is open. */
    const inner: number[] = [];
    const enter = (): void => void inner.push(0);
    const leave = (node: Node): void => {
      const lines = node.loc.end.line - node.loc.start.line + 1;
      const own = lines - (inner.pop() ?? 0);
      // The line on which an inner function opens also belongs to the outer one.
      if (inner.length > 0) inner.push((inner.pop() ?? 0) + lines - 1);
      if (own > MOST_LINES) context.report({ node, message: `a function of (${own}) lines` });
    };
    const kinds = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];
    return Object.fromEntries(
      kinds.flatMap((kind) => [
        [kind, enter],
        [`${kind}:exit`, leave],
      ]),
    );
  },
};

export default { meta: { name: 'functions' }, rules: { 'own-lines': ownLines } };
