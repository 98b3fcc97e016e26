{{/*
Settings stand in the pod and not in a ConfigMap: pods of the version before, restarted during an upgrade, must not read settings of
the next, and `migrate` runs before a ConfigMap would exist. Called with (dict "root" $ "component" "api").
*/}}
{{- define "heliograph.env" -}}
{{- $root := .root }}
{{- $own := dict "HELIOGRAPH_MODE" "production" "HELIOGRAPH_API_HOST" $root.Values.listenAddress "HELIOGRAPH_API_PORT" "8080" }}
{{- $_ := merge $own (dict "HELIOGRAPH_API_METRICS_PORT" "9464" "HELIOGRAPH_WORKER_HEALTH_PORT" "9464") }}
{{- if and (eq .component "api") $root.Values.api.tls.existingSecret }}
{{- $_ := merge $own (dict "HELIOGRAPH_HTTPS_PORT" "8443" "HELIOGRAPH_TLS_CERT_FILE" "/run/tls/tls.crt" "HELIOGRAPH_TLS_KEY_FILE" "/run/tls/tls.key") }}
{{- end }}
{{- range $name, $value := merge $own $root.Values.settings }}
- { name: {{ $name }}, value: {{ include "heliograph.text" $value | quote }} }
{{- end }}
{{- range $name, $place := $root.Values.secrets.from }}
- { name: {{ $name }}, valueFrom: { secretKeyRef: { name: {{ $place.name }}, key: {{ $place.key }} } } }
{{- end }}
{{- range $root.Values.secrets.asFiles }}
- { name: {{ . }}_FILE, value: /run/secrets/heliograph/{{ . }} }
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
What every pod of the service has. Called with (dict "root" $ "component" "api" "values" $.Values.api "args" list "container" "…"), where
`container` is what this container has besides, as YAML.
*/}}
{{- define "heliograph.podSpec" -}}
{{- $root := .root }}
{{- $values := .values }}
{{- $isApiWithTls := and (eq .component "api") $root.Values.api.tls.existingSecret }}
serviceAccountName: {{ .serviceAccountName | default (include "heliograph.serviceAccountName" $root) }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" }}
{{- with get $values $name }}
{{ $name }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
containers:
  - name: {{ .component }}
    image: {{ include "heliograph.image" $root }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: {{ toJson .args }}
    env: {{- include "heliograph.env" . | nindent 6 }}
    {{- if not $root.Values.secrets.asFiles }}
    envFrom:
      - secretRef: { name: {{ $root.Values.secrets.existingSecret }} }
    {{- end }}
    {{- with .container }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $values.resources }}
    resources: {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    volumeMounts:
      - { name: tmp, mountPath: /tmp }
      {{- if $root.Values.secrets.asFiles }}
      - { name: secrets, mountPath: /run/secrets/heliograph, readOnly: true }
      {{- end }}
      {{- if $isApiWithTls }}
      - { name: tls, mountPath: /run/tls, readOnly: true }
      {{- end }}
      {{- with $root.Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - { name: tmp, emptyDir: {} }
  {{- with $root.Values.secrets }}
  {{- if .asFiles }}
  - name: secrets
    secret:
      secretName: {{ .existingSecret }}
      defaultMode: 0440
      items:
        {{- range .asFiles }}
        - { key: {{ . }}, path: {{ . }} }
        {{- end }}
  {{- end }}
  {{- end }}
  {{- if $isApiWithTls }}
  - { name: tls, secret: { secretName: {{ $root.Values.api.tls.existingSecret }}, defaultMode: 0440 } }
  {{- end }}
  {{- with $root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The Node.js flags of the image's own command. */}}
{{- define "heliograph.nodeFlags" -}}
["node", "--heap-growing-percent=80", "--max-semi-space-size=8", "--import", "./bin/stripped-types.js"]
{{- end }}

{{/* A Deployment. Called with (dict "root" $ "component" "api" "values" $.Values.api "container" "…"). */}}
{{- define "heliograph.deployment" -}}
{{- $values := .values }}
{{- $isScaled := or $values.autoscaling.enabled (dig "keda" "enabled" false $values) }}
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "heliograph.metadata" . | nindent 2 }}
spec:
  {{- if not $isScaled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  # A pod goes when its successor is ready.
  strategy: { type: RollingUpdate, rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }
  selector:
    matchLabels: {{- include "heliograph.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "heliograph.labels" . | nindent 8 }}
        heliograph/metrics: "true"
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      terminationGracePeriodSeconds: {{ include "heliograph.gracePeriod" . }}
      {{- $args := append (include "heliograph.nodeFlags" .root | fromJsonArray) "src/main.ts" }}
      {{- include "heliograph.podSpec" (merge (dict "args" (append $args .component)) .) | nindent 6 }}
      topologySpreadConstraints:
        {{- with $values.topologySpreadConstraints }}
        {{- toYaml . | nindent 8 }}
        {{- else }}
        {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ $key }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "heliograph.selector" $ | nindent 14 }}
          matchLabelKeys: [pod-template-hash]
        {{- end }}
        {{- end }}
{{- end }}

{{/* What keeps pods running while nodes are emptied, and adds some by CPU. Called as the Deployment. */}}
{{- define "heliograph.availability" -}}
{{- with .values.podDisruptionBudget }}
{{- if .enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "heliograph.metadata" $ | nindent 2 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  # A pod that is not ready protects nobody.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "heliograph.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- with .values.autoscaling }}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{- include "heliograph.metadata" $ | nindent 2 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ include "heliograph.fullname" $.root }}-{{ $.component }} }
  minReplicas: {{ .minReplicas }}
  maxReplicas: {{ .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ .targetCPUUtilizationPercentage }} }
{{- end }}
{{- end }}
{{- end }}
