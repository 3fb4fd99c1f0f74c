from typing import Any
def attacks() -> list[Any]: return []
def stands_as_the_users(a: Any) -> bool: return False
