{{- define "heliograph.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- end }}

{{/* Called with (dict "root" $ "component" "api"). */}}
{{- define "heliograph.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "heliograph.labels" -}}
{{ include "heliograph.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "heliograph.metadata" -}}
name: {{ include "heliograph.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "heliograph.labels" . | nindent 2 }}
{{- end }}

{{- define "heliograph.serviceAccountName" -}}
{{- default (ternary (include "heliograph.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "heliograph.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "heliograph.operatorPort" -}}
{{- with .Values.settings.HELIOGRAPH_PORTAL_OPERATOR_LISTEN }}{{ regexFind "[0-9]+$" . }}{{ end }}
{{- end }}

{{- define "heliograph.publicHost" -}}
{{- regexReplaceAll ":\\d+$" (urlParse .Values.settings.HELIOGRAPH_PUBLIC_URL).host "" }}
{{- end }}

{{/* Numbers of YAML are floating point here: 104857600 must not become 1.048576e+08. */}}
{{- define "heliograph.text" -}}
{{- if kindIs "float64" . }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* What a process may take to stop, in seconds: its drain settings, and some to spare. Called with (dict "root" $ "component" "api"). */}}
{{- define "heliograph.gracePeriod" -}}
{{- $settings := .root.Values.settings }}
{{- $drainMs := 0 }}
{{- if eq .component "api" }}
{{- $noticeMs := default 3000 $settings.HELIOGRAPH_API_DRAIN_NOTICE_MS }}
{{- $drainMs = add (int64 $noticeMs) (int64 (default 15000 $settings.HELIOGRAPH_API_DRAIN_TIMEOUT_MS)) (mul 1000 (int64 .root.Values.api.preStopSleepSeconds)) }}
{{- else }}
{{- $drainMs = int64 (default 30000 $settings.HELIOGRAPH_WORKER_DRAIN_TIMEOUT_MS) }}
{{- end }}
{{- add 10 (div (add 999 $drainMs) 1000) }}
{{- end }}
