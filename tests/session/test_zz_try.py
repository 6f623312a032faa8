from __future__ import annotations
import json, sys
from dataclasses import replace
from pathlib import Path
import pytest
from foundry_implementation_actor.domain.run import Budget, Cause
from support.sessions import BUDGET, Stage
MB=1024*1024
PYTHON = f"exec {sys.executable} -I -S -c"
@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
B=replace(BUDGET, clock_s=8)
ROOM=replace(B, disk_bytes=8*MB, disk_files=300)
CHURN="""import os, sys
os.mkdir('d')
for n in range(20): open('d/b%d' % n, 'wb').write(b'x' * 1_000_000)
while True:
    for n in range(40): open('d/c%d' % n, 'wb').close()
    for n in range(40): os.unlink('d/c%d' % n)
"""
MAPPED="import mmap, os, signal\nf = open('b', 'w+b'); os.unlink('b'); f.write(b'x' * 20_000_000); f.flush(); m = mmap.mmap(f.fileno(), 0); d = os.open('.', 0); f.close(); signal.pause()"
MAPPED2="import ctypes, mmap, os, signal\nf = open('b', 'w+b'); os.unlink('b'); f.write(b'x' * 20_000_000); f.flush()\nlibc=ctypes.CDLL(None); libc.mmap.restype=ctypes.c_void_p\nassert libc.mmap(None, ctypes.c_size_t(20_000_000), 1, 1, f.fileno(), ctypes.c_long(0)) > 0\nf.close(); signal.pause()"
SENT="import array, os, signal, socket\na, b = socket.socketpair()\nf = open('b', 'wb'); os.unlink('b'); f.write(b'x' * 20_000_000); f.flush(); socket.send_fds(a, [b'x'], [f.fileno()]); f.close(); signal.pause()"
@pytest.mark.parametrize("code", ["CHURN","MAPPED","MAPPED2","SENT"])
def test_disk(stage, code):
    (stage.base/"p.py").write_text(globals()[code])
    end=stage.play({"shell": f"exec {sys.executable} -I -S {stage.base/'p.py'}"}, budget=ROOM)
    assert end.cause is Cause.DISK, end
ZOMB="import os, signal\nfor _ in range(200):\n    if os.fork() == 0: os._exit(0)\nsignal.pause()"
STORM="import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n        while True:\n            if os.fork(): os._exit(0)\nimport signal; signal.pause()"
THREADS="import _thread, signal\nl = _thread.allocate_lock(); l.acquire()\n_thread.stack_size(65536)\nfor _ in range(2000): _thread.start_new_thread(l.acquire, ())\nsignal.pause()"
@pytest.mark.parametrize("code", ["ZOMB","THREADS","STORM"])
def test_proc(stage, code):
    (stage.base/"p.py").write_text(globals()[code])
    end=stage.play({"shell": f"exec {sys.executable} -I -S {stage.base/'p.py'}"}, budget=replace(B, processes=20, clock_s=5))
    assert end.cause is Cause.PROCESSES, end
MEMFD="import os, signal\nf = os.memfd_create('x'); os.write(f, b'x' * 1_000_000)\nfor _ in range(150): os.write(f, b'x' * 1_000_000)\nsignal.pause()"
SHMDEL="import os, signal\nf = os.open('/dev/shm/t1x', os.O_RDWR|os.O_CREAT); os.unlink('/dev/shm/t1x')\nfor _ in range(150): os.write(f, b'x' * 1_000_000)\nsignal.pause()"
@pytest.mark.parametrize("code", ["MEMFD","SHMDEL"])
def test_mem(stage, code):
    (stage.base/"p.py").write_text(globals()[code])
    end=stage.play({"shell": f"exec {sys.executable} -I -S {stage.base/'p.py'}"}, budget=replace(B, memory_bytes=90_000_000))
    assert end.cause is Cause.MEMORY, end
RES=[{"usage":{"cache_creation_input_tokens":int("9"*4300),"cache_read_input_tokens":int("9"*4300)}},{"num_turns":int("9"*4300)},{"total_cost_usd":-5},{"total_cost_usd":True},
 {"usage":{"input_tokens":int("9"*4299)}}]
@pytest.mark.parametrize("res", RES, ids=range(len(RES)))
def test_result(stage, res):
    end=stage.play({"raw": json.dumps({"type":"result","subtype":"success","is_error":False,"result":"x",**res})+"\n"})
    assert end.cause is Cause.FINISHED
    assert end.cost_usd == 0
    [r]=[r for r in stage.records if r["event"]=="result"]
