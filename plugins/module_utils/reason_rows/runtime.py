# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about the container runtime and CDI."""
from __future__ import annotations

from .row import ERROR, Reason

ROWS: tuple[Reason, ...] = (
    Reason(
        "CdiRuntimeMissing", ERROR,
        "no container runtime was found: none of the units {units} is there",
        "Install containerd or CRI-O with a systemd unit of that name, then run again.",
    ),
    Reason(
        "CdiRuntimeAmbiguous", ERROR,
        "there are several container runtimes: {units}",
        "Say by cdi_runtime_name which one the kubelet uses: {names}.",
    ),
    Reason(
        "CdiRuntimeUnreadable", ERROR,
        "{binary} cannot be asked for its version: {why}",
        "See that the unit starts the runtime's program itself and not through a script, and that {binary} --version works as root.",
    ),
    Reason(
        "CdiRuntimeTooOld", ERROR,
        "{runtime} cannot be made to inject devices by CDI here",
        "Upgrade to {oldest} or newer.",
    ),
    Reason(
        "CdiConfigBroken", ERROR,
        "the runtime's configuration {path} cannot be used: {why}",
        "Put the file right; the running daemon still has an older configuration and would not start again with this one.",
    ),
    Reason(
        "CdiConfigTooOld", ERROR,
        "{path} has configuration version {version}, for which there are no drop-in files",
        "Bring it to version 2 or newer (containerd 2 prints it by containerd config migrate; this one reads up to version {newest}), then run again.",
    ),
    Reason(
        "CdiImportMissing", ERROR,
        "{path} imports no folder for drop-in files",
        "Add this line above its first table, or add the folder to the imports that are there: {line}.",
    ),
    Reason(
        "CdiTemplateImportMissing", ERROR,
        "{path}, which {runtime} writes, imports no folder for drop-in files",
        "Upgrade {runtime}; a containerd template of your own needs this line above its first table: {line}.",
    ),
    Reason(
        "CdiCriDisabled", ERROR,
        "containerd's CRI plugin is off, so no kubelet can use it",
        "Remove cri from disabled_plugins in {path} and restart containerd.",
    ),
    Reason(
        "CdiNotEffective", ERROR,
        "{path} would not have an effect, for another file sets CDI otherwise ({files})",
        "Remove enable_cdi and cdi_spec_dirs from the file that is read after it.",
    ),
    Reason(
        "CdiDropInConflict", ERROR,
        "{path} would change more than the CDI settings: {keys}",
        "Set enable_cdi and cdi_spec_dirs in the runtime's own configuration by hand.",
    ),
    Reason(
        "CdiSectionHasSecrets", ERROR,
        "this containerd would need {drop_in} to repeat the CRI section of {path} with credentials in it ({keys})",
        "Set enable_cdi = true and cdi_spec_dirs in that section by hand, or take the credentials out of it (imagePullSecrets), then run again.",
    ),
    Reason(
        "CdiRestartNeedsConsent", ERROR,
        "{unit} has to be restarted ({why}), and pods run under it: {pods}",
        "Drain the node, or set cdi_runtime_restart_ok to true: running containers go on over a restart, but their probes, logs and exec fail meanwhile.",
    ),
    Reason(
        "CdiRuntimeNotStarted", ERROR,
        "{unit} did not come back with the new configuration, and the files were put back as they were; it says: {journal}",
        "Look at systemctl status and the journal of the unit, put right what it names, then run again.",
    ),
    Reason(
        "CdiNotServed", ERROR,
        "after the change the runtime still does not serve CDI: {found}",
        "Look at the runtime's journal and its effective configuration (containerd config dump, crio status config).",
    ),
)
