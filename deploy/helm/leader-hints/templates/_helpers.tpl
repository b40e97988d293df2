{{- define "leader-hints.name" -}}
{{- if contains "leader-hints" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-leader-hints" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "leader-hints.selector" -}}
app.kubernetes.io/name: leader-hints
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leader-hints.labels" -}}
{{ include "leader-hints.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "leader-hints.routes" -}}
{{- if .Values.routes -}}
{{- toYaml .Values.routes -}}
{{- else if eq .Values.mode "daemonset" -}}
- listen: ${NODE_IP}:9092
  upstream: ${NODE_IP}:19092
{{- else -}}
- name: ${POD_NAME}
  listen: 0.0.0.0:19092
  upstream: 127.0.0.1:9092
{{- end -}}
{{- end -}}

{{- define "leader-hints.admin" -}}
{{- .Values.admin | default (eq .Values.mode "daemonset" | ternary "127.0.0.1:9100" "0.0.0.0:9100") -}}
{{- end -}}

{{/*
The loopback address of the admin server as the kubelet asks there; empty where it is the pod's own.
With the host's network the node's loopback address is the pod's; otherwise the kubelet has another.
*/}}
{{- define "leader-hints.loopback" -}}
{{- $admin := include "leader-hints.admin" . -}}
{{- $host := regexReplaceAll ":[0-9]+$" $admin "" | trimPrefix "[" | trimSuffix "]" | lower -}}
{{- if or (hasPrefix "127." $host) (has $host (list "localhost" "localhost." "::1")) -}}
{{- if ne .Values.mode "daemonset" -}}
{{- fail (printf "admin %s: the kubelet cannot reach a loopback address of a pod, so its probes would fail; give 0.0.0.0:PORT or [::]:PORT, and let the network policy say who may ask" $admin) -}}
{{- end -}}
{{- $host | trimSuffix "." -}}
{{- else if not (or (has $host (list "0.0.0.0" "::")) (hasPrefix "${" $host)) -}}
{{- fail (printf "admin %s: the kubelet asks at the pod's address and would not find it there; give a loopback address (daemonset), 0.0.0.0, [::] or a variable such as ${NODE_IP}, each with its port" $admin) -}}
{{- end -}}
{{- end -}}

{{/* What the kubelet asks: at the pod's address, or at the one that the admin server alone has. */}}
{{- define "leader-hints.probe" -}}
httpGet:
  {{- with include "leader-hints.loopback" .root }}
  host: {{ . | quote }}
  {{- end }}
  path: {{ .path }}
  port: hints-admin
{{- end -}}

{{/* The container, for a pod of any kind. Give it the chart's own scope. */}}
{{- define "leader-hints.container" -}}
{{- $node := eq .Values.mode "daemonset" -}}
{{- $admin := include "leader-hints.admin" . -}}
name: leader-hints
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [run]
env:
  {{- if $node }}
  - name: NODE_IP
    valueFrom:
      fieldRef:
        fieldPath: status.hostIP
  {{- else }}
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- end }}
  - name: LEADER_HINTS_CONFIG
    value: /etc/leader-hints/leader-hints.yaml
  - name: LEADER_HINTS_ADMIN
    value: {{ $admin | quote }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  {{- range $number, $route := include "leader-hints.routes" . | fromYamlArray }}
  {{- $port := $route.listen | splitList ":" | last | int }}
  - name: hints-{{ $number }}
    containerPort: {{ $port }}
    {{- if $node }}
    hostPort: {{ $port }}
    {{- end }}
  {{- end }}
  {{- $port := $admin | splitList ":" | last | int }}
  - name: hints-admin
    containerPort: {{ $port }}
    {{- if $node }}
    hostPort: {{ $port }}
    {{- with include "leader-hints.loopback" . }}
    hostIP: {{ eq . "localhost" | ternary "127.0.0.1" . | quote }}
    {{- end }}
    {{- end }}
startupProbe:
  {{- include "leader-hints.probe" (dict "root" . "path" "/livez") | nindent 2 }}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  {{- include "leader-hints.probe" (dict "root" . "path" "/livez") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  {{- include "leader-hints.probe" (dict "root" . "path" "/readyz") | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 5
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
volumeMounts:
  - name: leader-hints
    mountPath: /etc/leader-hints
    readOnly: true
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The volumes that the container mounts: items of the pod's volumes. */}}
{{- define "leader-hints.volumes" -}}
- name: leader-hints
  configMap:
    name: {{ include "leader-hints.name" . }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An item of the brokers' initContainers; empty where sidecars are not native. */}}
{{- define "leader-hints.initContainer" -}}
{{- if .Values.sidecar.native -}}
- restartPolicy: Always
  {{- include "leader-hints.container" . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* An item of the brokers' containers; empty where sidecars are native. */}}
{{- define "leader-hints.sidecar" -}}
{{- if not .Values.sidecar.native -}}
- lifecycle:
    # Pods end all their containers at once; so the proxy waits until the broker has gone.
    preStop:
      exec:
        command:
          - leader-hints
          - wait-gone
          - --at-most
          - {{ .Values.sidecar.leaveWithinSeconds | quote }}
  {{- include "leader-hints.container" . | nindent 2 }}
{{- end -}}
{{- end -}}
