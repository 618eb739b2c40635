#!/usr/bin/env bash
# A sweep on Slurm: sbatch deploy/slurm.sh [settings of a sweep]. Every node joins one Ray cluster, the first runs the sweep.
#SBATCH --job-name=speechfarm
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# A token of this job alone: without one whoever reaches the ports can run code.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN="${RAY_AUTH_TOKEN:-$(openssl rand -hex 32)}" RAY_USAGE_STATS_ENABLED=0
srun --ntasks="$SLURM_JOB_NUM_NODES" .venv/bin/ray symmetric-run \
  --address "$head:6379" --min-nodes "$SLURM_JOB_NUM_NODES" -- \
  .venv/bin/python jobs/sweep.py cluster=existing "$@"
