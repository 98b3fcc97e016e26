"""The base of all models."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An object of the service. Members that this version does not know are in `model_extra`."""

    model_config = ConfigDict(
        extra="allow", frozen=True, populate_by_name=True, protected_namespaces=(), defer_build=True
    )
