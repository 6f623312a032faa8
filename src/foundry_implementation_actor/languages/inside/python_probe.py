"""Import one module of an app and say what does not link; runs in the app's own interpreter.

It reads `{nonce, module, class, root, questions}` as JSON from stdin and writes one line to stdout: the nonce,
a space, and `{"findings": [...], "overrides": {...}, "true": [...]}`. A question is a list of words; those
that hold in the running program come back under `true`. Standard library only, for Python 3.8 and later.
"""

import builtins
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback

P = inspect.Parameter
POSITIONAL = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)


def finding(rule, message, line=0):
    return {"rule": rule, "message": message, "line": line}


def narrows(base, over, by_name):
    """What a call that is right for `base` may no longer do with `over`; names only when `by_name`."""
    wanted, given = list(base.parameters.values()), list(over.parameters.values())
    any_more = any(p.kind is P.VAR_POSITIONAL for p in given)
    any_name = any(p.kind is P.VAR_KEYWORD for p in given)
    first, second = ([p for p in some if p.kind in POSITIONAL] for some in (wanted, given))
    if not second and not any_more:
        return ["takes no self"] if first else []
    said = []
    if len(second) < len(first) and not any_more:
        said.append("accepts %d positional arguments, its base %d" % (len(second) - 1, len(first) - 1))
    for old, new in list(zip(first, second))[1:]:
        if by_name and old.name != new.name and not any_name and old.kind is P.POSITIONAL_OR_KEYWORD:
            said.append("renames the parameter %s to %s" % (old.name, new.name))
        if old.default is not P.empty and new.default is P.empty:
            said.append("needs %s, which its base does not" % new.name)
    # What takes the rest by name may have been taken by name before.
    loose = any(p.kind is P.VAR_POSITIONAL for p in wanted) and any(p.kind is P.VAR_KEYWORD for p in wanted)
    if loose:
        return []
    said += ["needs %s, which its base does not have" % p.name for p in second[len(first):] if p.default is P.empty]
    names, olds = {p.name for p in given}, {p.name for p in wanted}
    for p in wanted:
        if p.kind is P.KEYWORD_ONLY and p.name not in names and not any_name:
            said.append("does not take %s=" % p.name)
    for p in given:
        if p.kind is P.KEYWORD_ONLY and p.default is P.empty and p.name not in olds:
            said.append("needs %s=, which its base does not have" % p.name)
    return said


def of_app(thing, root):
    """Whether a class is written in the app itself, not installed into its environment."""
    path = getattr(sys.modules.get(getattr(thing, "__module__", "")), "__file__", None) or ""
    below = os.path.abspath(path).startswith(root + os.sep)
    return below and "site-packages" not in path and "dist-packages" not in path


def plain(function):
    """The signature of a plain function as written, or None when it is wrapped or something else."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
        return None
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def overrides(cls):
    """Each plain method that a class overrides by a plain one: its name, it, and the class it comes from."""
    for name, function in list(vars(cls).items()):
        if name.startswith("__") or plain(function) is None:
            continue
        base = next((base for base in cls.__mro__[1:] if name in vars(base)), None)
        if base is not None and plain(vars(base)[name]) is not None:
            yield name, function, base


def look_at(cls, root):
    """What is wrong with a class's methods, and how each override differs from what it overrides."""
    found, compared = [], {}
    for name, function, base in overrides(cls):
        old, new = plain(vars(base)[name]), plain(function)
        title, line = "%s.%s" % (cls.__name__, name), function.__code__.co_firstlineno
        said = narrows(old, new, of_app(base, root))
        found += [finding("override-narrows", "%s %s (%s)" % (title, one, base.__name__), line) for one in said]
        compared[title] = {
            "of_app": of_app(base, root),
            "narrows": bool(said),
            "returns_differ": old.return_annotation != new.return_annotation,
            "generates": inspect.isasyncgenfunction(function),
        }
    for name, function in list(vars(cls).items()):
        signature = None if name.startswith("__") else plain(function)
        if signature is not None and not signature.parameters and "%s.%s" % (cls.__name__, name) not in compared:
            line = function.__code__.co_firstlineno
            found.append(finding("no-self", "%s.%s takes no self" % (cls.__name__, name), line))
    return found, compared


def abstract_left(cls):
    """The inherited abstract methods that a class leaves open, unless it is meant to be abstract itself."""
    left = sorted(getattr(cls, "__abstractmethods__", ()))
    meant = {base.__name__ for base in cls.__bases__} & {"ABC", "Protocol"} or [n for n in left if n in vars(cls)]
    if meant:
        return []
    return [finding("abstract-left", "%s does not implement %s" % (cls.__name__, name)) for name in left]


def resolve(name, module):
    """A class by its bare name: in the module's own namespace first, then among the loaded modules."""
    thing = getattr(module, name, None)
    if isinstance(thing, type):
        return thing
    for other in list(sys.modules.values()):
        thing = vars(other).get(name) if hasattr(other, "__dict__") else None
        if isinstance(thing, type) and thing.__name__ == name:
            return thing
    return None


def is_member(name, member):
    loaded = importlib.import_module(name)
    return hasattr(loaded, member) or importlib.util.find_spec(name + "." + member) is not None


def has_attribute(cls, attribute):
    return cls is not None and (hasattr(cls, attribute) or hasattr(cls, "__getattr__"))


def breaks_promise(wanted, given, root):
    """Whether a class of the app stands where the app's own Protocol or ABC is wanted and is not one."""
    if wanted is None or given is None or not of_app(wanted, root) or not of_app(given, root):
        return False
    if getattr(wanted, "_is_protocol", False):
        members = [name for name in {**vars(wanted), **getattr(wanted, "__annotations__", {})} if name[0] != "_"]
        return any(not hasattr(given, name) for name in members)
    return bool(getattr(wanted, "__abstractmethods__", None)) and not issubclass(given, wanted)


def holds(question, module, root):
    kind, first, second = question
    if kind == "import":
        return importlib.util.find_spec(first) is not None
    if kind == "member":
        return is_member(first, second)
    if kind == "name":
        return hasattr(module, first) or hasattr(builtins, first)
    if kind == "attribute":
        return has_attribute(resolve(first, module), second)
    if kind == "of-app":
        thing = resolve(first, module)
        return thing is not None and of_app(thing, root)
    return breaks_promise(resolve(first, module), resolve(second, module), root)


def ask(questions, module, root):
    true = []
    for question in questions:
        try:
            if holds(question, module, root):
                true.append(question)
        except Exception:
            continue
    return true


def judge(asked):
    name, root = asked["module"], asked["root"]
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == asked["file"]]
        rule = "import-" + type(error).__name__
        message = "%s: %s" % (type(error).__name__, error)
        return {"findings": [finding(rule, message, lines[-1] if lines else 0)], "stopped": True}
    found, compared = [], {}
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and cls.__module__ == name:
            narrowed, details = look_at(cls, root)
            found += narrowed
            compared.update(details)
            if cls.__name__ == asked["class"]:
                found += abstract_left(cls)
    if not asked["is_test"] and not hasattr(module, asked["class"]):
        found.append(finding("class-gone", "after its import, %s has no %s" % (name, asked["class"])))
    return {"findings": found, "overrides": compared, "true": ask(asked["questions"], module, root)}


def main():
    asked = json.loads(sys.stdin.read())
    nonce = asked.pop("nonce")
    output = os.dup(1)
    os.dup2(2, 1)
    answer = nonce + " " + json.dumps(judge(asked))
    os.write(output, ("\n" + answer + "\n").encode())
    os._exit(0)


main()
