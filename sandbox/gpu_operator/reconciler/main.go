// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Command gpu-operator stands in for NVIDIA's GPU Operator in the sandbox. It does what the operator does for a
// GPUCluster, the path of Dynamic Resource Allocation, and nothing else; see ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"gpufleet.dra/sandbox/gpu-operator/internal/cleanup"
	"gpufleet.dra/sandbox/gpu-operator/internal/gpucluster"
	"gpufleet.dra/sandbox/gpu-operator/internal/nodelabels"
	"gpufleet.dra/sandbox/gpu-operator/internal/unsupported"
	"gpufleet.dra/sandbox/gpu-operator/internal/validation"
)

// commands are the container entry points of the chart and of the operands' manifests.
var commands = map[string]func(context.Context, []string) error{
	"manager":           runManager,
	"validate-driver":   runValidateDriver,
	"delete-gpucluster": runDeleteGPUCluster,
	"idle":              runIdle,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: gpu-operator manager|validate-driver|delete-gpucluster|idle [flags]")
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New())
	if err := commands[os.Args[1]](ctrl.SetupSignalHandler(), os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "gpu-operator %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// runManager runs the controllers until the process is told to end.
func runManager(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	featureDiscovery := flags.Bool("node-feature-discovery", false, "also write the labels of Node Feature Discovery")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	namespace := os.Getenv("OPERATOR_NAMESPACE")
	if namespace == "" {
		return fmt.Errorf("OPERATOR_NAMESPACE is empty: it must name the namespace of the operands")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 clientgoscheme.Scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: ":8081",
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&appsv1.DaemonSet{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		}},
		// One namespace is read, once a minute: no reason to watch them all.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Namespace{}}}},
	})
	if err != nil {
		return err
	}
	controllers := []interface{ SetupWithManager(ctrl.Manager) error }{
		&nodelabels.Reconciler{Client: manager.GetClient(), FeatureDiscovery: *featureDiscovery},
		&gpucluster.Reconciler{
			Client:         manager.GetClient(),
			Recorder:       manager.GetEventRecorder("gpu-cluster-controller"),
			Namespace:      namespace,
			ValidatorImage: os.Getenv("VALIDATOR_IMAGE"),
			DRADriverImage: os.Getenv("DRA_DRIVER_IMAGE"),
		},
		unsupported.ClusterPolicy(manager.GetClient()),
		unsupported.NVIDIADriver(manager.GetClient()),
	}
	for _, controller := range controllers {
		if err := controller.SetupWithManager(manager); err != nil {
			return err
		}
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// runValidateDriver waits for a driver on the host or in the driver container's root.
func runValidateDriver(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("validate-driver", flag.ExitOnError)
	hostRoot := flags.String("host-root", "/host", "where the host's root is mounted")
	installDir := flags.String("driver-install-dir", "/run/nvidia/driver", "the driver container's root, mounted at its own path")
	output := flags.String("output", "/run/nvidia/validations/driver-ready", "the file to write for the plugin")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	roots := []validation.Root{{Host: "/", Container: *hostRoot}, {Host: *installDir, Container: *installDir}}
	return validation.WaitForDriver(ctx, roots, *output, os.Stdout)
}

// runDeleteGPUCluster deletes the GPUCluster and waits for its end.
func runDeleteGPUCluster(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("delete-gpucluster", flag.ExitOnError)
	timeout := flags.Duration("timeout", 5*time.Minute, "how long to wait")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return err
	}
	return cleanup.DeleteGPUCluster(ctx, writer, *timeout)
}

// runIdle keeps a container alive that only holds its claim.
func runIdle(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return nil
}
