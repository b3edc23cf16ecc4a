"""What CloudFormation's intrinsic functions give, for one stack whose resources are known."""

import re


class Stack:
    """Resolves values of a template: `refs` and `attributes` say what the resources have become."""

    def __init__(self, template, parameters, refs, attributes):
        self.template = template
        self.refs = dict(refs)
        self.attributes = attributes
        for name, parameter in template.get("Parameters", {}).items():
            self.refs[name] = parameters.get(name, parameter.get("Default", ""))

    def value(self, node):
        """The value of a node of the template; what is `AWS::NoValue` is left out."""
        if isinstance(node, list):
            return [value for value in map(self.value, node) if value is not None]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (name, argument), = node.items()
            function = getattr(self, "_" + name.removeprefix("Fn::").lower(), None)
            if function and (name.startswith("Fn::") or name in ("Ref", "Condition")):
                return function(argument)
        values = {key: self.value(child) for key, child in node.items()}
        return {key: value for key, value in values.items() if value is not None}

    def holds(self, name):
        """Whether a condition of the template holds."""
        return self.value(self.template["Conditions"][name])

    def _condition(self, name):
        # A policy has conditions of its own, which are no names.
        return self.holds(name) if isinstance(name, str) else {"Condition": self.value(name)}

    def _ref(self, name):
        if name == "AWS::NoValue":
            return None
        if self.template.get("Parameters", {}).get(name, {}).get("Type") == "CommaDelimitedList":
            return self.refs[name].split(",")
        return str(self.refs[name])

    def _getatt(self, path):
        name, attribute = path.split(".", 1) if isinstance(path, str) else path
        return self.attributes(name, attribute)

    def _sub(self, argument):
        text, more = argument if isinstance(argument, list) else (argument, {})

        def variable(match):
            name = match[1]
            if name in more:
                return self.value(more[name])
            return self._getatt(name) if "." in name else self._ref(name)

        return re.sub(r"\$\{([A-Za-z0-9:.]+)\}", variable, text)

    def _if(self, argument):
        condition, yes, no = argument
        return self.value(yes if self.holds(condition) else no)

    def _equals(self, argument):
        left, right = map(self.value, argument)
        return str(left) == str(right)

    def _not(self, argument):
        return not self.value(argument[0])

    def _and(self, argument):
        return all(map(self.value, argument))

    def _or(self, argument):
        return any(map(self.value, argument))

    def _join(self, argument):
        return argument[0].join(self.value(argument[1]))

    def _split(self, argument):
        return self.value(argument[1]).split(argument[0])

    def _select(self, argument):
        return self.value(argument[1])[int(argument[0])]

    def _findinmap(self, argument):
        name, first, second = map(self.value, argument)
        return self.template["Mappings"][name][str(first)][second]
