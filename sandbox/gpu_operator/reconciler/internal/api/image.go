// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package api

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Image says where a container image comes from, in the three parts that the operator's resources use.
type Image struct {
	Repository       string            `json:"repository,omitempty"`
	Image            string            `json:"image,omitempty"`
	Version          string            `json:"version,omitempty"`
	ImagePullPolicy  corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets []string          `json:"imagePullSecrets,omitempty"`
}

// Reference returns the full image reference. `image` alone is taken as a full reference; with nothing set the
// fallback (an environment variable of the operator) is used; a version that starts with "sha256:" is a digest.
func (i Image) Reference(owner, fallback string) (string, error) {
	switch {
	case i.Image != "" && i.Repository == "" && i.Version == "":
		return i.Image, nil
	case i.Image != "" && i.Repository != "" && strings.HasPrefix(i.Version, "sha256:"):
		return i.Repository + "/" + i.Image + "@" + i.Version, nil
	case i.Image != "" && i.Repository != "" && i.Version != "":
		return i.Repository + "/" + i.Image + ":" + i.Version, nil
	case i.Image == "" && i.Repository == "" && i.Version == "" && fallback != "":
		return fallback, nil
	}
	return "", fmt.Errorf("no image for %s: repository %q, image %q, version %q; give all three, or image alone",
		owner, i.Repository, i.Image, i.Version)
}

// PullPolicy returns the pull policy as set, IfNotPresent where it is not.
func (i Image) PullPolicy() corev1.PullPolicy {
	if i.ImagePullPolicy == "" {
		return corev1.PullIfNotPresent
	}
	return i.ImagePullPolicy
}
