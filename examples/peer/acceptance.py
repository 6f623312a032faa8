"""The peer's own check of a branch, run in its files: what does not hold is printed, and then it ends with 1."""

import sys

sys.path.insert(0, "backend")

import orders

wrong = []
if (got := orders.place({"lines": []})) != {"accepted": False, "code": "empty-order"}:
    wrong.append(f"E1: an order without lines was answered with {got}")
if (got := orders.place({"lines": [{"quantity": 2, "unit_cents": 450}]})) != {"accepted": True, "cents": 900}:
    wrong.append(f"E2: two widgets of 450 cents were answered with {got}")
sys.stdout.writelines(f"{line}\n" for line in wrong)
sys.exit(bool(wrong))
