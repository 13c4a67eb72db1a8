{{/*
Copyright: (c) 2026, gpufleet.dra contributors
GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
*/}}

{{- define "gpu-operator.labels" -}}
app.kubernetes.io/name: gpu-operator
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The operator's image as one reference. */}}
{{- define "gpu-operator.image" -}}
{{- $version := .Values.operator.version | default .Chart.Version -}}
{{- $separator := ternary "@" ":" (hasPrefix "sha256:" $version) -}}
{{ .Values.operator.repository }}/{{ .Values.operator.image }}{{ $separator }}{{ $version }}
{{- end }}

{{/* The validator's image as one reference; without values of its own the operator's. */}}
{{- define "gpu-operator.validatorImage" -}}
{{- with .Values.validator -}}
{{- if and .repository .image .version -}}
{{ .repository }}/{{ .image }}{{ ternary "@" ":" (hasPrefix "sha256:" .version) }}{{ .version }}
{{- else -}}
{{ include "gpu-operator.image" $ }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "gpu-operator.imagePullSecrets" -}}
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
