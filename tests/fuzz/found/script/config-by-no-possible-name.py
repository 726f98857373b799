import deepspeed
engine, *_ = deepspeed.initialize(config='\ud800defn', model=model)
