"""Job steps over several nodes: the first node's hub hands out what srun asks for, members run it.

  steps.py hub      on the first node; ends, and ends the members, when its stdin is closed
  steps.py member   on every other node; dials the hub

Hub and members prove to each other that they know the gang's token before a word is exchanged.
"""
import base64
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener, answer_challenge, deliver_challenge

FOLDER = os.environ["DROVER_SBATCH_DIR"]
SOCKET = os.path.join(FOLDER, "hub")
NODES = os.path.join(FOLDER, "nodes")
MEET_SECONDS = 60
# Whoever connects and does not prove who it is within this is none of ours.
HELLO_SECONDS = 10
STRANGERS = 64
CHUNK = 65536
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
# A task has these of its own node; all else comes from where srun was called.
OF_NODE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPU_DEVICE_ORDINAL", "SLURM_JOB_GPUS",
           "SLURM_TMPDIR", "TMPDIR", "HOME", "HOSTNAME", "DROVER_SBATCH_DIR", "DROVER_TASK_ID",
           "DROVER_TASK_INDEX", "DROVER_ATTEMPT_UID", "DROVER_PORTS")


class Line:
    """A connection that carries JSON and may be written to by several threads."""

    def __init__(self, connection):
        self.connection = connection
        self.lock = threading.RLock()

    def send(self, **message):
        with self.lock:
            self.connection.send_bytes(json.dumps(message).encode())

    def receive(self):
        return json.loads(self.connection.recv_bytes())


def in_thread(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()


class Hub:
    def __init__(self):
        self.size = int(os.environ["SLURM_NNODES"])
        self.key = os.environ["DROVER_GANG_TOKEN"].encode()
        self.members = {}
        self.names = {0: name_of(socket.gethostname(), os.environ["MASTER_ADDR"])}
        self.steps = {}
        self.complete = threading.Event()
        self.unknown = threading.BoundedSemaphore(self.size + STRANGERS)

    def run(self):
        for name in SIGNALS:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        port = int(os.environ["MASTER_PORT"])
        in_thread(self.listen, Listener(("", port), backlog=self.size), self.meet)
        if not self.complete.wait(MEET_SECONDS):
            absent = [rank for rank in range(1, self.size) if rank not in self.members]
            sys.exit(f"ranks {absent} did not come within {MEET_SECONDS} s")
        in_thread(self.listen, Listener(SOCKET, "AF_UNIX", backlog=64), self.serve)
        with open(NODES + ".new", "w") as file:
            file.writelines(self.names[rank] + "\n" for rank in range(self.size))
        os.rename(NODES + ".new", NODES)
        sys.stdin.buffer.read()
        for member in self.members.values():
            member.send(do="end")

    def listen(self, listener, greet):
        while True:
            try:
                connection = listener.accept()
            except OSError as error:
                print(f"a connection failed: {error}", file=sys.stderr)
                continue
            address = listener.last_accepted
            in_thread(greet, connection, address)

    def meet(self, connection, address):
        """Strangers fail the challenge; members stay, and report what their tasks do."""
        if not self.unknown.acquire(blocking=False):
            connection.close()
            return
        try:
            limit_reads(connection, HELLO_SECONDS)
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
            line = Line(connection)
            hello = line.receive()
            limit_reads(connection, 0)
        except (AuthenticationError, EOFError, OSError, ValueError) as error:
            print(f"turned away {address}: {error!r}", file=sys.stderr)
            connection.close()
            return
        finally:
            self.unknown.release()
        rank = hello["rank"]
        self.names[rank] = name_of(hello["host"], address[0])
        self.members[rank] = line
        if len(self.members) == self.size - 1:
            self.complete.set()
        try:
            while True:
                message = line.receive()
                step = self.steps.get(message["step"])
                if step:
                    step.send(**message)
        except (EOFError, OSError):
            for step in list(self.steps.values()):
                step.send(lost=rank)

    def serve(self, connection, _address):
        """One srun: its step's tasks on other nodes, until it hangs up."""
        line = Line(connection)
        request = line.receive()
        step = request["step"]
        self.steps[step] = line
        ranks = [int(rank) for rank in request["layout"]]
        try:
            for rank in ranks:
                tasks = request["layout"][str(rank)]
                self.members[rank].send(do="start", tasks=tasks, **{**request, "layout": None})
            while True:
                message = line.receive()
                for rank in ranks:
                    self.members[rank].send(step=step, **message)
        except (EOFError, OSError):
            del self.steps[step]
            for rank in ranks:
                self.members[rank].send(do="signal", step=step, signal="SIGKILL")


def limit_reads(connection, seconds):
    """0: as long as it takes."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def name_of(host, address):
    """The host's name where it leads here; otherwise the address, which does."""
    try:
        known = {info[4][0] for info in socket.getaddrinfo(host, None)}
        return host if address in known or address == host else address
    except OSError:
        return address


def start_task(request, task, local, node, **streams):
    """`request` holds command, env, cwd, gpus and names, as srun sent it."""
    env = dict(request["env"])
    for name in OF_NODE:
        env.pop(name, None)
        if name in os.environ:
            env[name] = os.environ[name]
    env["PATH"] = env["PATH"].replace(request["folder"], FOLDER)
    devices = [one for one in env.get("CUDA_VISIBLE_DEVICES", "").split(",") if one]
    gpus = request["gpus"]
    if gpus and len(devices) >= (local + 1) * gpus:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(devices[local * gpus:(local + 1) * gpus])
    env.update(SLURM_PROCID=str(task), SLURM_LOCALID=str(local), SLURM_NODEID=str(node),
               SLURMD_NODENAME=request["names"][node])
    cwd = request["cwd"] if os.path.isdir(request["cwd"]) else os.getcwd()
    return subprocess.Popen(request["command"], env=env, cwd=cwd, **streams)


class Member:
    def __init__(self):
        self.running = {}
        self.stopping = False

    def run(self):
        signal.signal(signal.SIGTERM, self.stop)
        line = self.dial()
        try:
            while True:
                message = line.receive()
                if message["do"] == "end":
                    sys.exit(0)
                if message["do"] == "start":
                    self.start(line, message)
                else:
                    for process in self.running.get(message["step"], []):
                        process.send_signal(getattr(signal, message["signal"]))
        except (EOFError, OSError):
            sys.exit("drover: the first node is gone")

    def dial(self):
        key = os.environ["DROVER_GANG_TOKEN"].encode()
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        until = time.monotonic() + MEET_SECONDS
        while True:
            try:
                connection = Client(address)
                answer_challenge(connection, key)
                deliver_challenge(connection, key)
                line = Line(connection)
                line.send(rank=int(os.environ["RANK"]), host=socket.gethostname())
                return line
            except AuthenticationError:
                sys.exit(f"drover: whoever listens at {address} is not of this gang")
            except (OSError, EOFError) as error:
                if time.monotonic() > until:
                    sys.exit(f"drover: the first node at {address} does not answer: {error}")
                time.sleep(0.1)

    def start(self, line, request):
        rank = int(os.environ["RANK"])
        first, count = request["tasks"]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                 "stderr": subprocess.PIPE}
        for local in range(count):
            task = first + local
            try:
                process = start_task(request, task, local, rank, **pipes)
            except OSError as error:
                text = f"srun: {error}\n".encode()
                line.send(step=request["step"], task=task, stream=2, data=packed(text))
                line.send(step=request["step"], task=task, code=127)
                continue
            self.running.setdefault(request["step"], []).append(process)
            in_thread(self.watch, line, request["step"], task, process)

    def watch(self, line, step, task, process):
        def pump(stream, pipe):
            while chunk := pipe.read1(CHUNK):
                line.send(step=step, task=task, stream=stream, data=packed(chunk))
        errors = threading.Thread(target=pump, args=(2, process.stderr), daemon=True)
        errors.start()
        pump(1, process.stdout)
        errors.join()
        line.send(step=step, task=task, code=exit_code(process.wait()))
        self.running[step].remove(process)
        if self.stopping and not any(self.running.values()):
            os._exit(143)

    def stop(self, *_):
        """Tasks are in this group and got the signal too; the last one takes us along."""
        self.stopping = True
        if not any(self.running.values()):
            os._exit(143)


def packed(data):
    return base64.b64encode(data).decode()


def exit_code(status):
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if sys.argv[1] == "hub":
        Hub().run()
    else:
        Member().run()
