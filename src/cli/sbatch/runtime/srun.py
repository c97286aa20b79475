"""What srun becomes in a job over several nodes: own tasks as children, others through the hub.

  srun.py TASKS NODES HOSTS GPUS LABEL TURN COMMAND…
"""
import base64
import os
import queue
import signal
import subprocess
import sys
from multiprocessing.connection import Client

from steps import FOLDER, NODES, SIGNALS, SOCKET, Line, exit_code, in_thread, start_task


class Run:
    def __init__(self, arguments):
        tasks, nodes, hosts, gpus, label, turn = arguments[:6]
        self.tasks, self.label = int(tasks), label != ""
        with open(NODES) as file:
            self.names = file.read().split()
        step = int(os.environ["SLURM_STEP_ID"])
        ranks = self.pick(int(nodes), hosts, step if turn else 0)
        self.layout = spread(self.tasks, ranks)
        self.request = {"step": f"{step}.{os.getpid()}", "command": arguments[6:],
                        "env": dict(os.environ), "cwd": os.getcwd(), "folder": FOLDER,
                        "gpus": int(gpus), "names": self.names}
        self.codes = queue.Queue()
        self.children = []
        self.started = {}

    def pick(self, count, hosts, turn):
        if not hosts:
            return sorted((turn + at) % len(self.names) for at in range(count))
        unknown = [host for host in hosts.split(",") if host not in self.names]
        if unknown:
            sys.exit(f"srun: {unknown[0]} is no node of this job: {' '.join(self.names)}")
        return sorted({self.names.index(host) for host in hosts.split(",")})

    def main(self):
        line = Line(Client(SOCKET, "AF_UNIX"))
        for name in SIGNALS:
            signal.signal(getattr(signal, name), lambda number, _: self.forward(line, number))
        far = {rank: tasks for rank, tasks in self.layout.items() if rank != 0}
        line.send(**self.request, layout=far)
        in_thread(self.listen, line)
        first, count = self.layout.get(0, (0, 0))
        for local in range(count):
            self.start_here(first + local, local)
        worst = 0
        for _ in range(self.tasks):
            worst = max(worst, self.codes.get())
        sys.stdout.flush()
        os._exit(worst)

    def start_here(self, task, local):
        streams = {"stdin": None if task == 0 else subprocess.DEVNULL}
        if self.label:
            streams.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process = start_task(self.request, task, local, 0, **streams)
        except OSError as error:
            self.write(task, 2, f"srun: {error}\n".encode())
            self.codes.put(127)
            return
        self.children.append(process)
        in_thread(self.watch, task, process)

    def watch(self, task, process):
        if self.label:
            out, errors = process.communicate()
            self.write(task, 1, out)
            self.write(task, 2, errors)
        self.codes.put(exit_code(process.wait()))

    def listen(self, line):
        try:
            while True:
                message = line.receive()
                if "lost" in message:
                    print(f"srun: node {self.names[message['lost']]} is gone", file=sys.stderr)
                    os._exit(1)
                if "code" in message:
                    self.codes.put(message["code"])
                else:
                    data = base64.b64decode(message["data"])
                    self.write(message["task"], message["stream"], data)
        except (EOFError, OSError):
            print("srun: the job is ending", file=sys.stderr)
            os._exit(1)

    def write(self, task, stream, data):
        if self.label and data:
            lines = data.splitlines(keepends=True)
            data = b"".join(b"%d: %s" % (task, line) for line in lines)
        target = sys.stdout.buffer if stream == 1 else sys.stderr.buffer
        target.write(data)
        target.flush()

    def forward(self, line, number):
        for process in self.children:
            if process.poll() is None:
                process.send_signal(number)
        line.send(do="signal", signal=signal.Signals(number).name)


def spread(tasks, ranks):
    """In blocks: rank, then its first task and how many."""
    layout, first = {}, 0
    for at, rank in enumerate(ranks):
        count = tasks // len(ranks) + (1 if at < tasks % len(ranks) else 0)
        layout[rank] = (first, count)
        first += count
    return layout


if __name__ == "__main__":
    Run(sys.argv[1:]).main()
