"""Moves a catalog while scripts/soak runs: soak_catalog.py REGISTRY REPOSITORY STOP MOVES

The tag `calm` stays. Each second the tag `now` names another state, one in six times one that was there before, until the file STOP exists.
What the registry is not there for is left out. Each move is a line in MOVES.
"""

import base64
import http.client
import os
import random
import sys
import time
from pathlib import Path

from chaos_images import Layer, image, push
from worst_inputs import lines, one_bundle

# Enough to be served from several objects, few enough to be polled every second.
PACKAGES = 60


def package(name, step):
    """A package with an icon that no compressor makes much smaller."""
    icon = {"schema": "olm.icon", "package": name, "name": f"{name}.icon", "data": base64.b64encode(os.urandom(9000)).decode()}
    return lines([*one_bundle(name, version=f"0.{step}.0"), icon])


def change(step):
    """A layer over the base that rewrites one package, brings one and takes one away."""
    rewritten, visitor, gone = f"package-{step % PACKAGES}", f"visitor-{step % 5}", f"package-{step * 7 % PACKAGES}"
    return Layer({f"configs/{rewritten}/catalog.json": package(rewritten, step), f"configs/.wh.{gone}": b"",
                  f"configs/{visitor}/catalog.json": lines(one_bundle(visitor, version=f"0.{step}.0"))})


def main(registry, repository, stop, moves):
    base = Layer({f"configs/{name}/catalog.json": package(name, 0) for name in (f"package-{number}" for number in range(PACKAGES))})
    states = [image([base])]
    for tag in ("now", "calm"):
        push(registry, repository, *states[0], tag=tag)
    while not Path(stop).exists():
        following, is_new = time.monotonic() + 1, random.random() > 1 / 6
        state = image([base, change(len(states))]) if is_new else random.choice(states)
        try:
            push(registry, repository, *state)
        except (OSError, http.client.HTTPException):
            pass
        else:
            states += [state] if is_new else []
            with open(moves, "a") as file:
                print("new" if is_new else "back", file=file)
        time.sleep(max(following - time.monotonic(), 0))


main(*sys.argv[1:])
