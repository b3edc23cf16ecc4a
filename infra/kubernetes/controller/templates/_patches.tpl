{{- /* patch OBJECT OPERATIONS: applies a JSON patch in place. */}}
{{- define "patch" }}
{{- $object := .object }}
{{- range .operations }}
  {{- $value := .value }}{{ $op := .op }}
  {{- $parent := dict }}{{ $name := "" }}{{ $node := $object }}
  {{- $path := list }}
  {{- range splitList "/" (trimPrefix "/" .path) }}{{ $path = append $path (. | replace "~1" "/" | replace "~0" "~") }}{{ end }}
  {{- range initial $path }}
    {{- $parent = $node }}{{ $name = . }}
    {{- if kindIs "slice" $node }}{{ $node = index $node (atoi .) }}{{ else }}{{ $node = get $node . }}{{ end }}
  {{- end }}
  {{- $last := last $path }}
  {{- if kindIs "slice" $node }}
    {{- /* A list cannot be changed in place: what holds it gets another one. */}}
    {{- $list := list }}
    {{- range $at, $element := $node }}
      {{- if or (ne (toString $at) $last) (eq $op "add") }}{{ $list = append $list $element }}
      {{- else if eq $op "replace" }}{{ $list = append $list $value }}
      {{- end }}
    {{- end }}
    {{- if eq $last "-" }}{{ $list = append $list $value }}{{ end }}
    {{- $_ := set $parent $name $list }}
  {{- else if eq $op "remove" }}{{ $_ := unset $node $last }}
  {{- else }}{{ $_ := set $node $last $value }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* apply OBJECTS PATCHES: each patch to the objects that it targets, by kind, name, namespace and a label NAME=VALUE. As in a
       kustomization, kind and name are regular expressions, and what is not given is any. */}}
{{- define "apply" }}
{{- $objects := .objects }}
{{- range .patches }}
  {{- $target := .target }}
  {{- $operations := .patch }}
  {{- if kindIs "string" $operations }}{{ $operations = fromYamlArray $operations }}{{ end }}
  {{- range $objects }}
    {{- $label := splitn "=" 2 (default "=" $target.labelSelector) }}
    {{- if and (regexMatch (printf "^(%s)$" (default ".*" $target.kind)) .kind) (regexMatch (printf "^(%s)$" (default ".*" $target.name)) .metadata.name)
      (or (not $target.namespace) (eq (default "" .metadata.namespace) (default "" $target.namespace)))
      (or (not $label._0) (eq (get (default dict .metadata.labels) $label._0) $label._1)) }}
      {{- include "patch" (dict "object" . "operations" $operations) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
