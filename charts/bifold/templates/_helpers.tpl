{{/* `bifold` for the release `bifold`, `<release>-bifold` for any other; short enough for every suffix below. */}}
{{- define "bifold.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc 33 | trimSuffix "-") .Chart.Name -}}
{{- end -}}
{{- end -}}

{{- define "bifold.webhook" -}}{{ include "bifold.fullname" . }}-webhook{{- end -}}
{{- define "bifold.operator" -}}{{ include "bifold.fullname" . }}-operator{{- end -}}
{{- define "bifold.tlsSecret" -}}{{ include "bifold.webhook" . }}-tls{{- end -}}
{{- define "bifold.caSecret" -}}{{ include "bifold.webhook" . }}-ca{{- end -}}

{{/* (list root "webhook") */}}
{{- define "bifold.selectorLabels" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* (list root "webhook") */}}
{{- define "bifold.labels" -}}
{{ include "bifold.selectorLabels" . }}
app.kubernetes.io/part-of: bifold
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* (list root "webhook") */}}
{{- define "bifold.image" -}}
{{- $root := index . 0 -}}
{{- printf "%s/%s:%s" ($root.Values.images.registry | trimSuffix "/") (index . 1) ($root.Values.images.tag | default $root.Chart.AppVersion) -}}
{{- end -}}

{{/* The parts of a pod's spec that all pods of the chart share: Linux, restricted, spread over nodes. (list root "webhook") */}}
{{- define "bifold.podSpec" -}}
{{- $values := (index . 0).Values -}}
automountServiceAccountToken: true
{{- with $values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
os: {name: linux}
nodeSelector:
  {{- /* What would repair a Windows pod's placement must not need that repair itself. */}}
  {{- toYaml (merge (dict "kubernetes.io/os" "linux") $values.nodeSelector) | nindent 2 }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "bifold.selectorLabels" $ | nindent 8 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "bifold.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "bifold.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: probes}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: probes}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: probes}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}

{{/* (list root "webhook") */}}
{{- define "bifold.podMetadata" -}}
labels:
  {{- include "bifold.labels" . | nindent 2 }}
  {{- with (index . 0).Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with (index . 0).Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
