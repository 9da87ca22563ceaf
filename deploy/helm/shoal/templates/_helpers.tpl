{{- define "shoal.name" -}}
{{- if contains "shoal" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-shoal" (.Release.Name | trunc 34) }}{{ end -}}
{{- end }}

{{/* What a model's objects are called: names of clients may have capitals, dots and underscores. (list $ NAME) */}}
{{- define "shoal.worker" -}}
{{- printf "%s-%s" (include "shoal.name" (index . 0)) (index . 1 | lower | replace "." "-" | replace "_" "-") | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* (list $ COMPONENT) */}}
{{- define "shoal.selector" -}}
app.kubernetes.io/name: shoal
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "shoal.labels" -}}
{{ include "shoal.selector" . }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{/* shoal.yaml of the gateways. */}}
{{- define "shoal.config" -}}
{{- $dns := list }}
{{- $models := list }}
{{- range $model, $m := .Values.models }}
{{- if $m }}
{{- $dns = append $dns (dict "name" (printf "_worker._tcp.%s.%s.svc.%s" (include "shoal.worker" (list $ $model)) $.Release.Namespace $.Values.clusterDomain) "model" $model) }}
{{- $models = append $models (merge (dict "name" $model "external" true) ($m.config | default dict)) }}
{{- end }}
{{- end }}
{{- $service := include "shoal.name" . }}
{{- $namespace := .Release.Namespace }}
{{- $hosts := list $service (printf "%s.%s" $service $namespace) (printf "%s.%s.svc" $service $namespace) (printf "%s.%s.svc.%s" $service $namespace .Values.clusterDomain) }}
{{- $tls := dict "cert" "/tls/tls.crt" "key" "/tls/tls.key" "ca" "/tls/ca.crt" "name" .Values.tls.workerName }}
{{- $config := dict "listen" ":8080" "drain_grace_ms" (int .Values.gateway.drainGraceMs) "drain_ms" (int .Values.gateway.drainMs) "allow_hosts" (concat $hosts .Values.gateway.hosts) "models" $models "discovery" (dict "tls" $tls "dns" $dns) }}
{{- if .Values.inferencePool.enabled }}
{{- $_ := set $config "metrics" (dict "compat" "vllm") }}
{{- end }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.gateway.config)) }}
{{- end }}

{{/* Restricted Pod Security. */}}
{{- define "shoal.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "shoal.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* (list $ LABELS) */}}
{{- define "shoal.spread" -}}
{{- $labels := index . 1 }}
{{- range $key, $when := dict "kubernetes.io/hostname" (index . 0).Values.spread.nodes "topology.kubernetes.io/zone" (index . 0).Values.spread.zones }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: {{ $when }}
  labelSelector:
    matchLabels: {{- $labels | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{/* Where a pod goes: (list FIRST OTHERWISE) */}}
{{- define "shoal.place" -}}
{{- $first := index . 0 }}
{{- $otherwise := index . 1 }}
{{- with $first.nodeSelector | default $otherwise.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $first.affinity | default $otherwise.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $first.tolerations | default $otherwise.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $first.priorityClassName | default $otherwise.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* (list $ IMAGE) */}}
{{- define "shoal.image" -}}
{{- $image := merge dict (index . 1 | default dict) (index . 0).Values.image }}
image: "{{ $image.repository }}:{{ $image.tag }}"
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}
