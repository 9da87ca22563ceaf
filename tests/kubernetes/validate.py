"""Compare manifests with the OpenAPI description of a version of Kubernetes (api/openapi-spec/swagger.json of its module).

    validate.py SWAGGER.json MANIFEST...

Fails with a line for each field that is unknown there, has another type, or is missing. Prints the kinds that the description
does not have, which are other people's (cert-manager, KEDA, the Prometheus operator)."""
import json, re, sys, yaml

QUANTITY = re.compile(r"[+-]?(\d+|\d+\.\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")

class Schemas:
    def __init__(self, path):
        self.definitions = json.load(open(path))["definitions"]
        self.kinds = {(k["group"], k["version"], k["kind"]): name for name, d in self.definitions.items()
                      for k in d.get("x-kubernetes-group-version-kind", []) if len(d["x-kubernetes-group-version-kind"]) == 1}

    def faults(self, value, schema, where):
        if "$ref" in schema:
            if schema["$ref"].endswith(".Quantity"):
                if isinstance(value, bool) or not QUANTITY.fullmatch(str(value)):
                    yield f"{where} is {json.dumps(value)}, not a quantity"
                return
            schema = self.definitions[schema["$ref"].rsplit("/", 1)[1]]
        kind = schema.get("type")
        if kind is None and "properties" not in schema: # any value (JSON), as `x-kubernetes-preserve-unknown-fields`
            return
        if schema.get("format") == "int-or-string":
            kind = "integer" if isinstance(value, int) else "string"
        python = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, None: dict}[kind]
        if not isinstance(value, python) or (isinstance(value, bool) and kind != "boolean"):
            yield f"{where} is {json.dumps(value)}, not of type {kind or 'object'}"
            return
        if kind == "array":
            for i, item in enumerate(value):
                yield from self.faults(item, schema["items"], f"{where}[{i}]")
        elif kind in ("object", None):
            known = schema.get("properties", {})
            for name in schema.get("required", []):
                if name not in value:
                    yield f"{where}.{name} is missing"
            for name, item in value.items():
                if name in known:
                    yield from self.faults(item, known[name], f"{where}.{name}")
                elif "additionalProperties" in schema:
                    yield from self.faults(item, schema["additionalProperties"], f"{where}[{name}]")
                elif known:
                    yield f"{where}.{name} is unknown"

    def of(self, document):
        group, _, version = document["apiVersion"].rpartition("/")
        return self.kinds.get((group, version, document["kind"]))

def main(path, *manifests):
    schemas, faults, foreign, n = Schemas(path), [], set(), 0
    for manifest in manifests:
        for document in yaml.safe_load_all(open(manifest)):
            if document is None:
                continue
            name = schemas.of(document)
            if name is None:
                foreign.add(f"{document['apiVersion']}/{document['kind']}")
                continue
            n += 1
            faults += [f"{manifest}: {document['kind']} {document['metadata']['name']}: {f}"
                       for f in schemas.faults(document, {"$ref": "x/" + name}, "")]
    print("\n".join(faults) if faults else f"{n} objects")
    for kind in sorted(foreign):
        print("not described there:", kind)
    return 1 if faults or not n else 0

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
