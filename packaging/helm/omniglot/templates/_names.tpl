{{- define "omniglot.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "omniglot.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "omniglot.labels" -}}
{{ include "omniglot.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "omniglot.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "omniglot.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{/* The config of the values, with what the chart itself decides. */}}
{{- define "omniglot.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $_ := set $config "server" (merge (dict "listen" "0.0.0.0:8080" "admin" "0.0.0.0:8081") (default dict $config.server)) }}
{{- if $config.store }}
{{- $_ := set $config "journal" (merge (dict "path" "/var/lib/omniglot/journal") (default dict $config.journal)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}
