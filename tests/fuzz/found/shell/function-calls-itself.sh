#!/usr/bin/env bash
log() { echo "[$(date)] $*"eepspeed- gpus=8
    log "starting"
    torch0un --nproc_per_node "$gpus" train.peed- gpus=8
    log "starting"
    torch0un --nproc_per_node "$gpus" train.py --deepspeed ds.jy --deepspeed ds.json -#gradient_accumulation_steps 2
}
main "$@"
